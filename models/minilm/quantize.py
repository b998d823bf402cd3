#!/usr/bin/env python3
"""Writes model.onnx: all-MiniLM-L6-v2 with 8-bit weights, from its published float32 weights.

    pip install numpy scipy onnx tokenizers
    python3 quantize.py --weights model.safetensors --graph model_quantized.onnx --tokenizer tokenizer.json --texts FILE --out model.onnx

FILE holds some hundred texts, a JSON string a line. The graph is that of the
published 8-bit file, with these changes:

- Each column of weights has 8 bits, where the published file uses 7. GPTQ
  rounds them (Frantar et al. 2023): a weight's rounding error is made up for by
  the weights after it, as the inputs of the texts correlate.
- Inputs of the layers after a normalisation are shifted and scaled by channel,
  and so are the values of the attention, whose factors go into the weights
  (SmoothQuant, Xiao et al. 2023): a few large channels no longer coarsen the
  8-bit steps of the others.
- The weights also make up for the error of the layers before (least squares),
  the biases for its mean.
- Each word has a scale of its own; positions (256 of them) and types are float32.
"""
import argparse, json, struct
import numpy as np, onnx, tokenizers
from onnx import TensorProto, helper, numpy_helper
from scipy.special import erf

LAYERS, HIDDEN, HEADS, POSITIONS = 6, 384, 12, 256
LINEARS = ["attention.self.query", "attention.self.key", "attention.self.value",
           "attention.output.dense", "intermediate.dense", "output.dense"]
DAMPING = .01  # of the mean diagonal of X'X, added to it

def read_safetensors(path):
    b = open(path, "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    out = {}
    for name, v in json.loads(b[8:8 + n]).items():
        if v.get("dtype") == "F32":
            start, end = v["data_offsets"]
            out[name.removeprefix("bert.")] = np.frombuffer(b[8 + n + start:8 + n + end], np.float32).reshape(v["shape"])
    return out

def round_rows(x):
    """x as package bert rounds activations: each row to 8 bits, with a minimum of its own."""
    low, high = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
    step = (high - low) / 255
    step = np.where(step == 0, 1, step)
    return (np.round((x - low) / step) * step + low).astype(np.float32)

def gptq(w, hessian, scale):
    """Codes of w (inputs x outputs) that keep trace((w - q*scale)' hessian (w - q*scale)) small."""
    order = np.argsort(-np.diag(hessian))
    w = w[order].copy()
    upper = np.linalg.cholesky(np.linalg.inv(hessian[np.ix_(order, order)])).T
    codes, block = np.empty_like(w), 64
    for start in range(0, len(w), block):
        end = min(len(w), start + block)
        errors = np.empty((end - start, w.shape[1]))
        for j in range(start, end):
            codes[j] = np.clip(np.round(w[j] / scale), -127, 127)
            errors[j - start] = (w[j] - codes[j] * scale) / upper[j, j]
            w[j + 1:end] -= np.outer(upper[j, j + 1:end], errors[j - start])
        w[end:] -= upper[start:end, end:].T @ errors
    out = np.empty_like(codes)
    out[order] = codes
    return out

def smoothing(x, power):
    """The shift and divisor of each channel of x: its mean, and by how far it exceeds the others."""
    deviation = x.std(0)
    divisor = np.maximum((deviation / np.exp(np.log(deviation).mean())) ** power, 1)
    return x.mean(0).astype(np.float32), divisor.astype(np.float32)

class Quantizer:
    """Takes the texts through the exact model (h) and the quantised one (hq), layer by layer."""

    def __init__(self, params, ids):
        self.p, self.tensors = params, {}
        self.starts = np.cumsum([0] + [len(x) for x in ids])
        flat, at = np.concatenate([np.asarray(x) for x in ids]), np.concatenate([np.arange(len(x)) for x in ids])
        words = params["embeddings.word_embeddings.weight"]
        scales = np.abs(words).max(1, keepdims=True) / 127
        scales[scales == 0] = 1
        codes = np.clip(np.round(words / scales), -127, 127)
        self.tensors["words"], self.tensors["word scales"] = codes.astype(np.int8), scales.astype(np.float32)
        positions = params["embeddings.position_embeddings.weight"][:POSITIONS] + params["embeddings.token_type_embeddings.weight"][0]
        self.h = self.norm("embeddings.LayerNorm", words[flat] + positions[at])
        self.hq = self.norm("embeddings.LayerNorm", (codes * scales).astype(np.float32)[flat] + positions[at])

    def norm(self, name, x):
        d = x - x.mean(-1, keepdims=True)
        unit = d / np.sqrt((d ** 2).mean(-1, keepdims=True) + 1e-12)
        return (unit * self.p[name + ".weight"] + self.p[name + ".bias"]).astype(np.float32)

    def attention(self, qkv):
        q, k, v = (qkv[:, HIDDEN * j:HIDDEN * (j + 1)] for j in range(3))
        out, size = np.empty_like(q), HIDDEN // HEADS
        for start, end in zip(self.starts, self.starts[1:]):
            for head in range(HEADS):
                at = np.s_[start:end, size * head:size * (head + 1)]
                scores = q[at] @ k[at].T / np.sqrt(size)
                scores = np.exp(scores - scores.max(-1, keepdims=True))
                out[at] = scores / scores.sum(-1, keepdims=True) @ v[at]
        return out

    def linear(self, label, w, b, x, xq, shift, divisor):
        """Codes, scales and bias of the layer, and its exact and quantised outputs."""
        exact = x @ w + b
        z, zq = (x - shift) / divisor, round_rows((xq - shift) / divisor)
        hessian = (zq.T @ zq).astype(np.float64)
        hessian += np.eye(len(hessian)) * DAMPING * np.trace(hessian) / len(hessian)
        w = (w * divisor[:, None]).astype(np.float64)
        w += np.linalg.solve(hessian, (zq.T @ (z - zq)).astype(np.float64) @ w)
        scale = (np.abs(w).max(0) / 127).astype(np.float32)
        codes = gptq(w, hessian, scale)
        got = (zq @ (codes * scale)).astype(np.float32)
        bias = (exact - got).mean(0)
        got += bias
        error = ((got - exact) ** 2).sum() / ((exact - exact.mean(0)) ** 2).sum()
        print("%s: %.5f of the variance lost" % (label, error), flush=True)
        return codes.astype(np.int8), scale, bias.astype(np.float32), exact, got

    def layer(self, i, power):
        name = "encoder.layer.%d." % i
        ws = {n: self.p[name + n + ".weight"].T for n in LINEARS}
        bs = {n: self.p[name + n + ".bias"] for n in LINEARS}
        shift, divisor = smoothing(self.h, power)
        self.tensors[i, "shift", LINEARS[0]], self.tensors[i, "divisor", LINEARS[0]] = shift, divisor
        codes, scale, bias, exact, got = self.linear(name + "attention.self", np.concatenate([ws[n] for n in LINEARS[:3]], 1),
                                                     np.concatenate([bs[n] for n in LINEARS[:3]]), self.h, self.hq, shift, divisor)
        context = self.attention(exact)
        shift, divisor = smoothing(context, .5)
        # The attention's weights sum to 1: shifting and scaling the values does so to their means.
        values = np.s_[2 * HIDDEN:]
        scale[values] /= divisor
        bias[values] = (bias[values] - shift) / divisor
        got[:, values] = (got[:, values] - shift) / divisor
        for j, n in enumerate(LINEARS[:3]):
            at = np.s_[..., HIDDEN * j:HIDDEN * (j + 1)]
            self.tensors[i, n] = codes[at], scale[at], bias[at]
        def add(n, x, xq, shift, divisor):
            codes, scale, bias, exact, got = self.linear(name + n, ws[n], bs[n], x, xq, shift, divisor)
            self.tensors[i, n] = codes, scale, bias
            return exact, got
        exact, got = add(LINEARS[3], context, self.attention(got) * divisor + shift, shift, divisor)
        self.h, self.hq = (self.norm(name + "attention.output.LayerNorm", a + b) for a, b in ((self.h, exact), (self.hq, got)))
        shift, divisor = smoothing(self.h, power)
        self.tensors[i, "shift", LINEARS[4]], self.tensors[i, "divisor", LINEARS[4]] = shift, divisor
        gelu = lambda x: (x * .5 * (1 + erf(x / np.sqrt(2)))).astype(np.float32)
        up, upq = (gelu(x) for x in add(LINEARS[4], self.h, self.hq, shift, divisor))
        exact, got = add(LINEARS[5], up, upq, np.float32(0), np.ones(len(ws[LINEARS[5]]), np.float32))
        self.h, self.hq = (self.norm(name + "output.LayerNorm", a + b) for a, b in ((self.h, exact), (self.hq, got)))

def write(graph, tensors, params):
    """Puts the tensors into the published 8-bit graph."""
    known = {t.name: t for t in graph.initializer}
    def put(name, a):
        t = numpy_helper.from_array(np.ascontiguousarray(a), name)
        known[name].CopyFrom(t) if name in known else graph.initializer.append(t)
    producer = {o: n for n in graph.node for o in n.output}
    product = {n.input[1]: n for n in graph.node if n.op_type == "MatMulInteger"}
    smoothed = {}
    numbers = sorted({int(name.split("_")[1]) for name in known if name.startswith("onnx::MatMul_")})
    for at, number in enumerate(numbers):
        i, n = at // len(LINEARS), LINEARS[at % len(LINEARS)]
        codes, scale, bias = tensors[i, n]
        base = "onnx::MatMul_%d_" % number
        put(base + "quantized", codes), put(base + "scale", scale), put(base + "zero_point", np.zeros(len(scale), np.int8))
        put("encoder.layer.%d.%s.bias" % (i, n), bias)
        if (i, "shift", n) in tensors:
            name = "encoder.layer.%d.%s.input" % (i, n)
            put(name + ".shift", -tensors[i, "shift", n]), put(name + ".factor", (1 / tensors[i, "divisor", n]).astype(np.float32))
            smoothed[product[base + "quantized"].input[0]] = name
    nodes, unused, same = [], set(), {}
    for n in graph.node:
        name = smoothed.get(n.output[0])
        if n.op_type == "DynamicQuantizeLinear" and name:
            nodes += [helper.make_node("Add", [n.input[0], name + ".shift"], [name + ".shifted"]),
                      helper.make_node("Mul", [name + ".shifted", name + ".factor"], [name])]
            n.input[0] = name
        if n.op_type == "DequantizeLinear":  # rows of an embedding
            rows, gather = n.input[0], producer[n.input[0]]
            table, key = gather.input[0], gather.input[0].removesuffix("_quantized")
            unused |= {key + "_scale", key + "_zero_point"}
            if "word" in key:
                put(table, tensors["words"]), put(key + "_scales", tensors["word scales"])
                nodes += [helper.make_node("Cast", [rows], [rows + "_float"], to=TensorProto.FLOAT),
                          helper.make_node("Gather", [key + "_scales", gather.input[1]], [rows + "_scale"]),
                          helper.make_node("Mul", [rows + "_float", rows + "_scale"], list(n.output))]
            else:
                unused.add(table)
                put(key, params[key][:POSITIONS])
                gather.input[0] = key
                same[n.output[0]] = rows
            continue
        nodes.append(n)
    for n in nodes:
        n.input[:] = [same.get(x, x) for x in n.input]
    del graph.node[:]
    graph.node.extend(nodes)
    kept = [t for t in graph.initializer if t.name not in unused]
    del graph.initializer[:]
    graph.initializer.extend(kept)

def main():
    p = argparse.ArgumentParser()
    for name in ("weights", "graph", "tokenizer", "texts", "out"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--power", type=float, default=.6, help="of a channel's deviation, for its divisor")
    a = p.parse_args()
    tokenizer = tokenizers.Tokenizer.from_file(a.tokenizer)
    tokenizer.no_padding()
    tokenizer.enable_truncation(POSITIONS)
    params = read_safetensors(a.weights)
    q = Quantizer(params, [tokenizer.encode(json.loads(line)).ids for line in open(a.texts, encoding="utf-8")])
    for i in range(LAYERS):
        q.layer(i, a.power)
    model = onnx.load(a.graph)
    write(model.graph, q.tensors, params)
    onnx.checker.check_model(model)
    onnx.save(model, a.out)

if __name__ == "__main__":
    main()
