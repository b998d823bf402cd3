#!/usr/bin/env python3
"""Writes tools.lora: changes of the weights of all-MiniLM-L6-v2 for requests and tools.

    pip install torch numpy onnx tokenizers
    python3 tools.py --graph model_quantized.onnx --tokenizer tokenizer.json --data FILE --minutes 56 --out tools.lora

FILE holds catalogues, a JSON object a line:

    {"tools": [{"name": "…", "description": "…", "server": "…", "inputs": ["…"]}],
     "requests": [{"text": "…", "tools": [0]}]}

where the tools of a request are positions in the catalogue. The words of a
name are separated by blanks. graph is the published 8-bit file.

Every matrix W of the six layers becomes W + AB, where A has 16 columns (Hu et
al. 2021, LoRA). A batch has 64 requests with a tool each, two of the ten tools
of the catalogue that are nearest to each request, and the loss is the cross
entropy of 20 times the cosines over all tools of the batch. A tool is its name and
description, often shortened, sometimes with its server or inputs, and for one
in seven another request for the same tool. model.onnx keeps its own rounding:
package bert adds the changes to its codes.
"""
import argparse, json, random, struct, time
import numpy as np, onnx, tokenizers, torch
import torch.nn.functional as F

LAYERS, HIDDEN, HEADS = 6, 384, 12
RANK, BATCH, HARD, SCALE, RATE = 16, 64, 2, 20.0, 1e-3
LINEARS = ["query", "key", "value", "output", "up", "down"]  # the order in the graph and in tools.lora
CLS, SEP = 101, 102


class Encoder:
    """The network in bfloat16 with changes of low rank, which start at none."""

    def __init__(self, graph):
        raw = {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(graph).graph.initializer}

        def dequantized(name):
            q = raw[name + "_quantized"].astype(np.float32)
            return (q - raw[name + "_zero_point"].astype(np.float32)) * raw[name + "_scale"]

        def half(x):
            return torch.tensor(np.ascontiguousarray(x), dtype=torch.bfloat16)

        def norm(name):
            return torch.tensor(raw[name + ".LayerNorm.weight"]), torch.tensor(raw[name + ".LayerNorm.bias"])

        self.words, self.types, self.positions = (
            torch.tensor(dequantized(f"embeddings.{k}_embeddings.weight")) for k in ("word", "token_type", "position"))
        self.norm = norm("embeddings")
        products = sorted({int(k.split("_")[1]) for k in raw if k.startswith("onnx::MatMul_")})
        rng = np.random.default_rng(0)
        self.layers = []
        for l in range(LAYERS):
            at = f"encoder.layer.{l}."
            biases = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
                      "intermediate.dense", "output.dense"]
            layer = {"norms": (norm(at + "attention.output"), norm(at + "output"))}
            for i, (name, bias) in enumerate(zip(LINEARS, biases)):
                w = dequantized(f"onnx::MatMul_{products[6 * l + i]}")
                a = torch.tensor(rng.normal(0, 1 / np.sqrt(w.shape[0]), (RANK, w.shape[0])), dtype=torch.float32, requires_grad=True)
                b = torch.zeros((w.shape[1], RANK), requires_grad=True)
                layer[name] = (half(w.T), half(raw[at + bias + ".bias"]), a, b)
            self.layers.append(layer)
        self.changes = [p for layer in self.layers for name in LINEARS for p in layer[name][2:]]

    def __call__(self, texts, changed=2.0):
        longest, n = max(map(len, texts)) + 2, len(texts)
        ids, mask = np.zeros((n, longest), np.int64), np.zeros((n, longest), np.float32)
        for i, t in enumerate(texts):
            ids[i, :len(t) + 2], mask[i, :len(t) + 2] = [CLS, *t, SEP], 1
        ids, mask = torch.from_numpy(ids), torch.from_numpy(mask)

        def linear(x, name):
            w, bias, a, b = layer[name]
            y = F.linear(x, w, bias)
            return y + changed * F.linear(F.linear(x, a.to(x.dtype)), b.to(x.dtype)) if changed else y

        def normed(x, norm):
            return F.layer_norm(x.float(), (HIDDEN,), *norm, 1e-12).to(torch.bfloat16)

        hidden = ((1 - mask) * -1e9)[:, None, None, :].to(torch.bfloat16)
        x = normed(self.words[ids] + self.positions[:longest] + self.types[0], self.norm)
        for layer in self.layers:
            q, k, v = (linear(x, name).view(n, longest, HEADS, -1).transpose(1, 2) for name in LINEARS[:3])
            heads = F.scaled_dot_product_attention(q, k, v, attn_mask=hidden).transpose(1, 2).reshape(n, longest, HIDDEN)
            x = normed(x + linear(heads, "output"), layer["norms"][0])
            x = normed(x + linear(F.gelu(linear(x, "up")), "down"), layer["norms"][1])
        return F.normalize((x.float() * mask[..., None]).sum(1) / mask.sum(1, keepdim=True), dim=-1)

    def vectors(self, texts):
        """The vectors of texts without the changes."""
        order, out = np.argsort([len(t) for t in texts]), np.zeros((len(texts), HIDDEN), np.float32)
        with torch.no_grad():
            for i in range(0, len(order), 128):
                out[order[i:i + 128]] = self([texts[j] for j in order[i:i + 128]], 0).numpy()
        return out

    def write(self, path):
        with open(path, "wb") as out:
            def vector(v):
                scale = np.abs(v).max() / 127 or 1e-9
                out.write(struct.pack("<f", scale) + np.rint(v / scale).astype(np.int8).tobytes())
            out.write(struct.pack("<I", RANK))
            for layer in self.layers:
                for name in LINEARS:
                    a, b = (p.detach().double().numpy().T for p in layer[name][2:])
                    # Orthogonal vectors of decreasing size, which 8 bits represent best.
                    qa, ra = np.linalg.qr(2 * a)
                    qb, rb = np.linalg.qr(b.T)
                    u, s, v = np.linalg.svd(ra @ rb.T)
                    for r in range(RANK):
                        vector(qa @ u[:, r] * np.sqrt(s[r]))
                        vector(v[r] @ qb.T * np.sqrt(s[r]))


def text_of(tool, form):
    text = tool["name"]
    if tool["description"] and form != "name":
        text += ". " + (tool["description"].split(". ")[0][:200] if form == "short" else tool["description"][:260])
    if tool["server"] and form == "server":
        text = tool["server"] + ": " + text
    if tool["inputs"] and form == "inputs":
        text += " | " + ", ".join(tool["inputs"])
    return text


def main():
    p = argparse.ArgumentParser()
    for name in ("graph", "tokenizer", "data", "out"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--minutes", type=float, default=60)
    o = p.parse_args()
    tokenizer = tokenizers.Tokenizer.from_file(o.tokenizer)
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def tokens(texts, most=46):
        return [e.ids[1:-1][:most] for e in tokenizer.encode_batch(texts)]

    tools, requests, said = [], [], {}  # a request is its text, its tools, and the range of its catalogue
    for line in open(o.data):
        c, first = json.loads(line), len(tools)
        tools += c["tools"]
        for r in c["requests"]:
            for t in r["tools"]:
                said.setdefault(first + t, []).append(r["text"])
            requests.append((r["text"], [first + t for t in r["tools"]], first, len(tools)))
    model = Encoder(o.graph)
    texts = tokens([r[0] for r in requests], 44)
    near_tools, near_requests = model.vectors(tokens([text_of(t, "") for t in tools])), model.vectors(texts)

    def form(i, request):
        other = [s for s in said.get(i, ()) if s != request]
        if other and random.random() < .15:
            return random.choice(other)
        return text_of(tools[i], random.choice(["", "", "", "", "short", "short", "server", "inputs", "inputs", "name"]))

    optimizer = torch.optim.AdamW(model.changes, lr=RATE, weight_decay=.01)
    begun, step, losses, queue = time.time(), 0, [], []
    while (done := (time.time() - begun) / (o.minutes * 60)) < 1:
        if len(queue) < BATCH:
            queue = random.sample(range(len(requests)), len(requests))
        batch, queue = queue[:BATCH], queue[BATCH:]
        right = [random.choice(requests[e][1]) for e in batch]
        candidates = list(right)
        for e in batch:
            _, own, first, end = requests[e]
            nearest = [first + i for i in np.argsort(-near_tools[first:end] @ near_requests[e])[:14 + len(own)] if first + i not in own][:10]
            nearest = random.sample(nearest, min(HARD, len(nearest)))
            candidates += nearest + random.sample(range(len(tools)), HARD - len(nearest))
        # A candidate that also serves the request, or is the right tool in other words, is no wrong one.
        alike = near_tools[right] @ near_tools[candidates].T > .97
        mask = torch.tensor([[j != i and bool(c in requests[e][1] or c == right[i] or alike[i, j]) for j, c in enumerate(candidates)]
                             for i, e in enumerate(batch)])
        words = [form(c, requests[batch[i]][0] if i < len(batch) else None) for i, c in enumerate(candidates)]
        cosines = model([texts[e] for e in batch]) @ model(tokens(words)).T
        loss = F.cross_entropy((SCALE * cosines).masked_fill(mask, -1e4), torch.arange(len(batch)))
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / 40) * .5 * (1 + np.cos(np.pi * done))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.changes, 1.0)
        optimizer.step()
        step += 1
        losses.append(loss.item())
        if step % 25 == 0:
            print(f"step {step}, {time.time() - begun:.0f} s, loss {np.mean(losses[-25:]):.3f}", flush=True)
    model.write(o.out)


if __name__ == "__main__":
    main()
