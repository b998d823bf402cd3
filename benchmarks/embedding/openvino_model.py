"""all-MiniLM-L6-v2 as a graph of OpenVINO, from its float32 weights."""
import json, struct
import numpy as np, openvino
from openvino import opset13 as ops

LAYERS, HEADS, HIDDEN = 6, 12, 384

def read(path):
    b = open(path, "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    return {name.removeprefix("bert."): np.frombuffer(b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]], np.float32).reshape(v["shape"])
            for name, v in json.loads(b[8:8 + n]).items() if v.get("dtype") == "F32"}

def build(path):
    w, const = read(path), lambda *v: ops.constant(np.array(v if len(v) > 1 else v[0]))
    word = lambda name: ops.constant(w["embeddings.%s_embeddings.weight" % name])
    ids, mask = (ops.parameter([-1, -1], np.int64, name=name) for name in ("input_ids", "attention_mask"))

    def norm(x, name):
        x = ops.mvn(x, const([-1]), True, 1e-12, "inside_sqrt")
        return ops.add(ops.multiply(x, ops.constant(w[name + ".weight"])), ops.constant(w[name + ".bias"]))
    def linear(x, name):
        return ops.add(ops.matmul(x, ops.constant(w[name + ".weight"]), False, True), ops.constant(w[name + ".bias"]))
    def heads(x):
        return ops.transpose(ops.reshape(x, const(0, 0, HEADS, HIDDEN // HEADS), True), const(0, 2, 1, 3))

    length = ops.gather(ops.shape_of(ids), const(1), const(0))
    x = ops.add(ops.gather(word("word"), ids, const(0)),
                ops.gather(word("position"), ops.range(const(0), length, const(1), output_type="i64"), const(0)))
    x = norm(ops.add(x, ops.constant(w["embeddings.token_type_embeddings.weight"][0])), "embeddings.LayerNorm")
    bias = ops.convert(ops.unsqueeze(ops.unsqueeze(mask, const(1)), const(1)), "f32")
    bias = ops.multiply(ops.subtract(bias, ops.constant(np.float32(1))), ops.constant(np.float32(3e38)))
    for i in range(LAYERS):
        layer = "encoder.layer.%d." % i
        q, k, v = (heads(linear(x, layer + "attention.self." + name)) for name in ("query", "key", "value"))
        a = ops.transpose(ops.scaled_dot_product_attention(q, k, v, bias), const(0, 2, 1, 3))
        a = linear(ops.reshape(a, const(0, 0, HIDDEN), True), layer + "attention.output.dense")
        x = norm(ops.add(a, x), layer + "attention.output.LayerNorm")
        h = ops.gelu(linear(x, layer + "intermediate.dense"), "ERF")
        x = norm(ops.add(linear(h, layer + "output.dense"), x), layer + "output.LayerNorm")
    return openvino.Model([x], [ids, mask], "minilm")
