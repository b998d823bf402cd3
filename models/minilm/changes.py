#!/usr/bin/env python3
"""Writes tools.lora or symbols.lora: changes of the weights of all-MiniLM-L6-v2.

    pip install torch numpy onnx tokenizers
    python3 changes.py --graph model_quantized.onnx --tokenizer tokenizer.json --data FILE --minutes 56 --out tools.lora

FILE holds catalogues of tools, or packages of source code, a JSON object a line:

    {"tools": [{"name": "…", "description": "…", "server": "…", "inputs": ["…"]}],
     "requests": [{"text": "…", "items": [0]}]}
    {"symbols": [{"text": "…", "bare": "…"}], "requests": [{"text": "…", "items": [0], "comment": true}]}

where items are the positions of the right tools or symbols. The words of a name are
separated by blanks. The text of a symbol is what package indexer embeds, and bare is the
same without its comment. A request with comment is a sentence of the comment. graph is
the published 8-bit file.

Every matrix W of the six layers becomes W + AB, where A has 16 columns (Hu et
al. 2021, LoRA). They start at none, or at the changes of the file that --init names, of which
the share --keep remains in what is written. A batch has requests with a tool or symbol each,
and for each request some of its catalogue: the symbols that are nearest to it, or the tools
that are nearest to the right tool, and one of another catalogue. The loss is the cross
entropy of 20 times the cosines over all of the batch. A tool is its name and description, often
shortened, sometimes with its server or inputs, and for one in seven another request for
the same tool. Requests for symbols keep the vectors of the model without changes, since
they also search documents. model.onnx keeps its own rounding: package bert adds the
changes to its codes.
"""
import argparse, json, random, struct, time
import numpy as np, onnx, tokenizers, torch
import torch.nn.functional as F

LAYERS, HIDDEN, HEADS = 6, 384, 12
RANK, SCALE, RATE = 16, 20.0, 1e-3
TOGETHER = 6  # requests for symbols of one package, next to each other
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
        """The vectors of texts. Texts of similar length go through the network together."""
        order = np.argsort([len(t) for t in texts])
        parts = [self.part([texts[i] for i in some], changed) for some in np.array_split(order, max(1, len(texts) // 32))]
        return torch.cat(parts)[torch.from_numpy(np.argsort(order))]

    def part(self, texts, changed):
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

        hidden = ((1 - mask) * -1e9)[:, None, None, :]
        x = normed(self.words[ids] + self.positions[:longest] + self.types[0], self.norm)
        for layer in self.layers:
            q, k, v = (linear(x, name).view(n, longest, HEADS, -1).transpose(1, 2) for name in LINEARS[:3])
            q, k, v = q.float(), k.float(), v.float()  # a step takes a fifth less time than fused in bfloat16
            heads = (q @ k.transpose(2, 3) / np.sqrt(q.shape[-1]) + hidden).softmax(-1) @ v
            heads = heads.to(torch.bfloat16).transpose(1, 2).reshape(n, longest, HIDDEN)
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

    def read(self, path):
        with open(path, "rb") as f:
            def vector(size):
                scale, = struct.unpack("<f", f.read(4))
                return torch.from_numpy(np.frombuffer(f.read(size), np.int8) * np.float32(scale))
            if f.read(4) != struct.pack("<I", RANK):
                raise ValueError(f"{path} has no changes of rank {RANK}")
            with torch.no_grad():
                for layer in self.layers:
                    for name in LINEARS:
                        a, b = layer[name][2:]
                        for r in range(RANK):
                            a[r], b[:, r] = vector(a.shape[1]) / 2, vector(b.shape[0])

    def products(self):
        return [[2 * (b @ a).detach().double().numpy().T for a, b in (layer[n][2:] for n in LINEARS)] for layer in self.layers]

    def write(self, path, start, keep):
        """Writes the changes, mixed with the share keep of those at the start."""
        with open(path, "wb") as out:
            def vector(v):
                scale = np.abs(v).max() / 127 or 1e-9
                out.write(struct.pack("<f", scale) + np.rint(v / scale).astype(np.int8).tobytes())
            out.write(struct.pack("<I", RANK))
            for fitted, first in zip(self.products(), start):
                for new, old in zip(fitted, first):
                    # Orthogonal vectors of decreasing size, which 8 bits represent best.
                    u, s, v = np.linalg.svd((1 - keep) * new + keep * old, full_matrices=False)
                    for r in range(RANK):
                        vector(u[:, r] * np.sqrt(s[r]))
                        vector(v[r] * np.sqrt(s[r]))


def text_of(tool, form):
    if "bare" in tool:
        return tool["bare"]
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
    p.add_argument("--init")
    p.add_argument("--keep", type=float, default=0)
    p.add_argument("--rate", type=float, default=RATE)
    p.add_argument("--minutes", type=float, default=60)
    o = p.parse_args()
    tokenizer = tokenizers.Tokenizer.from_file(o.tokenizer)
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def tokens(texts, most=46):
        return [e.ids[1:-1][:most] for e in tokenizer.encode_batch(texts)]

    items, requests, said = [], [], {}  # a request is its text, its items, the range of its catalogue, and comment
    for line in open(o.data):
        c, first = json.loads(line), len(items)
        items += c.get("tools") or c["symbols"]
        for r in c["requests"]:
            for t in r["items"]:
                said.setdefault(first + t, []).append(r["text"])
            requests.append((r["text"], [first + t for t in r["items"]], first, len(items), r.get("comment")))
    symbols = "bare" in items[0]
    batch_size, hard = (48, 3) if symbols else (64, 2)
    model = Encoder(o.graph)
    if o.init:
        model.read(o.init)
    start = model.products()
    texts = tokens([r[0] for r in requests], 44)
    near_items, near_requests = model.vectors(tokens([text_of(t, "") for t in items], 88)), model.vectors(texts)

    def form(i, request, comment):
        if symbols:
            return items[i]["text" if random.random() < (.15 if comment else .5) else "bare"]
        other = [s for s in said.get(i, ()) if s != request]
        if other and random.random() < .15:
            return random.choice(other)
        return text_of(items[i], random.choice(["", "", "", "", "short", "short", "server", "inputs", "inputs", "name"]))

    def shuffled():
        if not symbols:
            return random.sample(range(len(requests)), len(requests))
        groups = {}
        for e in random.sample(range(len(requests)), len(requests)):
            groups.setdefault(requests[e][2], []).append(e)
        groups = [g[i:i + TOGETHER] for g in groups.values() for i in range(0, len(g), TOGETHER)]
        random.shuffle(groups)
        return [e for g in groups for e in g]

    optimizer = torch.optim.AdamW(model.changes, lr=RATE, weight_decay=.01)
    begun, step, losses, queue = time.time(), 0, [], []
    while (done := (time.time() - begun) / (o.minutes * 60)) < 1:
        if len(queue) < batch_size:
            queue = shuffled()
        batch, queue = queue[:batch_size], queue[batch_size:]
        right = [random.choice(requests[e][1]) for e in batch]
        candidates = list(right)
        for e, item in zip(batch, right):
            _, own, first, end, _ = requests[e]
            cosines = near_items[first:end] @ (near_requests[e] if symbols else near_items[item])
            nearest = [first + i for i in np.argsort(-cosines)[:14 + len(own)] if first + i not in own and (symbols or cosines[i] < .97)][:10]
            nearest = random.sample(nearest, min(hard, len(nearest)))
            others = random.sample(range(len(items)), hard - len(nearest))
            if not symbols:  # as near as one of 600, but not the same tool of another server
                some = random.sample(range(len(items)), 600)
                cosines = near_items[some] @ near_items[item]
                others = [some[i] for i in np.argsort(-cosines)[:12] if cosines[i] < .8 and not first <= some[i] < end][:1 + len(others)]
            candidates += nearest + others
        # A candidate that also serves the request, or is the right tool in other words, is no wrong one.
        alike = near_items[right] @ near_items[candidates].T > .97
        mask = torch.tensor([[j != i and bool(c in requests[e][1] or c == right[i] or alike[i, j]) for j, c in enumerate(candidates)]
                             for i, e in enumerate(batch)])
        of = [requests[batch[i]] if i < len(batch) else (None, None) for i in range(len(candidates))]
        words = [form(c, r[0], r[-1]) for c, r in zip(candidates, of)]
        asked = torch.from_numpy(near_requests[batch]) if symbols else model([texts[e] for e in batch])
        cosines = asked @ model(tokens(words, 88)).T
        loss = F.cross_entropy((SCALE * cosines).masked_fill(mask, -1e4), torch.arange(len(batch)))
        for group in optimizer.param_groups:
            group["lr"] = o.rate * min(1, (step + 1) / 40) * .5 * (1 + np.cos(np.pi * done))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.changes, 1.0)
        optimizer.step()
        step += 1
        losses.append(loss.item())
        if step % 25 == 0:
            print(f"step {step}, {time.time() - begun:.0f} s, loss {np.mean(losses[-25:]):.3f}", flush=True)
    model.write(o.out, start, o.keep)


if __name__ == "__main__":
    main()
