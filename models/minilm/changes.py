#!/usr/bin/env python3
"""Writes tools.lora or symbols.lora: changes of the weights of all-MiniLM-L6-v2.

    pip install torch numpy onnx tokenizers
    python3 changes.py --graph model_quantized.onnx --tokenizer tokenizer.json --data FILE --minutes 50 --out tools.lora

FILE holds catalogues of tools, or packages of source code, a JSON object a line:

    {"tools": [{"name": "…", "description": "…", "server": "…", "inputs": ["…"]}],
     "requests": [{"text": "…", "items": [0]}]}
    {"symbols": [{"text": "…", "bare": "…"}], "requests": [{"text": "…", "items": [0], "comment": true}]}

where items are the positions of the right tools or symbols, none for a request that no tool of the
catalogue serves. A request for several tools comes whole, with all of them, and once for each part.
The words of a name are separated by blanks. The text of a symbol is what package indexer embeds,
and bare is the same without its comment. A request with comment is a sentence of the comment.
graph is the published 8-bit file.

Every matrix W of the six layers becomes W + AB, where A has RANK columns (Hu et
al. 2021, LoRA). They start at none, or at the changes of the file that --init names, of which
the share --keep remains in what is written. A batch has tools or symbols of several
catalogues, half of the catalogues near the first one, and up to three requests for each
tool. So the wrong tools of a request are those that resemble the right one, and each vector
serves many pairs. The loss is the cross entropy of 20 times the cosines, of a request over all tools,
and, by WEIGHT, of a tool and its request over all requests for other tools. By NONE, it is also that
of a request for a tool over all tools and none, whose cosine is THRESHOLD. None is right for a request
that no tool serves and for one in five others, whose tools are hidden. So the cosine itself
tells whether a tool fits. A tool is its name and description, often shortened, sometimes with its
server or inputs, and for one in ten another request for the same tool. Requests for symbols keep the vectors of the
model without changes, since they also search documents. model.onnx keeps its own rounding:
package bert adds the changes to its codes.
"""
import argparse, json, random, struct, time
import numpy as np, onnx, tokenizers, torch
import torch.nn.functional as F

LAYERS, HIDDEN, HEADS = 6, 384, 12
RANK, SCALE, RATE, WEIGHT = 32, 20.0, 1e-3, .3
NONE, THRESHOLD, WITHOUT, ALIKE = .3, .45, .2, .7  # a tool is hidden with those nearer than ALIKE
ITEMS, REQUESTS, MOST = 72, 190, 30  # of a batch, and the most items of one catalogue
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
        parts = [self.part([texts[i] for i in some], changed) for some in np.array_split(order, max(1, len(texts) // 24))]
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

    def vectors(self, texts, changed=2.0):
        """The vectors of many texts."""
        with torch.no_grad():
            return np.concatenate([self(texts[i:i + 2048], changed).numpy() for i in range(0, len(texts), 2048)])

    def read(self, path):
        """Sets the changes to those of a file, whose rank is at most RANK."""
        with open(path, "rb") as f:
            def vector(size):
                scale, = struct.unpack("<f", f.read(4))
                return torch.from_numpy(np.frombuffer(f.read(size), np.int8) * np.float32(scale))
            rank, = struct.unpack("<I", f.read(4))
            with torch.no_grad():
                for layer in self.layers:
                    for name in LINEARS:
                        a, b = layer[name][2:]
                        for r in range(rank):
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


class Catalogues:
    """The items of all catalogues, the requests for each, and batches of both."""

    def __init__(self, path):
        self.items, self.requests, self.requests_of, self.unserved, self.ranges = [], [], {}, [], []
        for line in open(path):
            c, first = json.loads(line), len(self.items)
            self.items += c.get("tools") or c["symbols"]
            self.ranges.append((first, len(self.items)))
            self.unserved.append([])
            for r in c["requests"]:
                if not r["items"]:
                    self.unserved[-1].append(len(self.requests))
                for i in r["items"]:
                    self.requests_of.setdefault(first + i, []).append(len(self.requests))
                self.requests.append((r["text"], {first + i for i in r["items"]}, r.get("comment")))
        self.catalogue_of = np.concatenate([np.full(b - a, n) for n, (a, b) in enumerate(self.ranges)])

    def compare(self, vectors):
        """Keeps the vectors of the items, and finds the catalogues near each other."""
        self.vectors = vectors
        means = np.stack([vectors[a:b].mean(0) for a, b in self.ranges])
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        self.near = np.argsort(-means @ means.T, 1)[:, 1:25]
        weights = np.array([min(3000, 1 + sum(len(self.requests_of.get(i, ())) for i in range(a, b))) for a, b in self.ranges]) ** .75
        self.weights = weights / weights.sum()

    def cluster(self, catalogue, most):
        """At most so many items of a catalogue, two thirds of them near one of them."""
        a, b = self.ranges[catalogue]
        if b - a <= most:
            return list(range(a, b))
        nearest = np.argsort(-self.vectors[a:b] @ self.vectors[random.randrange(a, b)])[:most]
        near = np.random.choice(nearest, most * 2 // 3, False)
        rest = np.random.choice(np.setdiff1d(np.arange(b - a), near), most - len(near), False)
        return [a + int(i) for i in (*near, *rest)]

    def batch(self):
        """Items, pairs of a request and the place of its item, requests that no item serves, which
        items are no wrong ones for each pair, and which are like its item."""
        items, used = [], []
        while len(items) < ITEMS and len(used) < len(self.ranges):
            near = used and random.random() < .5
            c = int(random.choice(self.near[used[0]]) if near else np.random.choice(len(self.ranges), p=self.weights))
            if c not in used:
                used.append(c)
                items += self.cluster(c, min(MOST, max(8, ITEMS - len(items))))
        pairs = {}
        for place in random.sample(range(len(items)), len(items)):
            of = self.requests_of.get(items[place], ())
            for r in random.sample(of, min(3, len(of))):
                pairs.setdefault(r, place)
        pairs = list(pairs.items())[:REQUESTS]
        unserved = [r for c in used for r in random.sample(self.unserved[c], min(2, len(self.unserved[c])))]
        # The same tool in other words, or of another server, is no wrong one.
        same = self.catalogue_of[items][:, None] == self.catalogue_of[items]
        cosines = self.vectors[items] @ self.vectors[items].T
        equal = cosines > np.where(same, .97, .85)
        served = np.array([[equal[place, j] or i in self.requests[r][1] for j, i in enumerate(items)] for r, place in pairs])
        alike = cosines[[place for _, place in pairs]] > ALIKE
        return items, pairs, unserved, torch.from_numpy(served), torch.from_numpy(alike)


def none_loss(cosines, right, served, alike):
    """The cross entropy over all items and none. The rows after those with a right item have none."""
    n, none = len(right), cosines.shape[1]
    without = torch.rand(n) < WITHOUT
    hidden = served | without[:, None] & alike
    hidden[torch.arange(n), right] = without
    scores = torch.cat([cosines[:n].masked_fill(hidden, -1e4), cosines[n:]])
    scores = torch.cat([scores, torch.full((len(scores), 1), SCALE * THRESHOLD)], 1)
    return F.cross_entropy(scores, torch.cat([right.masked_fill(without, none), torch.full((len(cosines) - n,), none)]))


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

    def tokens(texts, most):
        return [e.ids[1:-1][:most] for e in tokenizer.encode_batch(texts)]

    data, model = Catalogues(o.data), Encoder(o.graph)
    symbols = "bare" in data.items[0]
    if o.init:
        model.read(o.init)
    start = model.products()
    data.compare(model.vectors(tokens([text_of(t, "") for t in data.items], 72)))
    asked = tokens([r[0] for r in data.requests], 80)
    if symbols:
        asked = torch.from_numpy(model.vectors(asked, 0))

    def form(i, taken):
        if symbols:
            comment = any(data.requests[r][2] for r in data.requests_of.get(i, ()) if r in taken)
            return data.items[i]["text" if random.random() < (.15 if comment else .5) else "bare"]
        others = [r for r in data.requests_of.get(i, ()) if r not in taken and data.requests[r][1] == {i}]
        if others and random.random() < .1:
            return data.requests[random.choice(others)][0]
        return text_of(data.items[i], random.choice(["", "", "", "", "", "short", "short", "server", "inputs", "inputs", "name"]))

    optimizer = torch.optim.AdamW(model.changes, lr=o.rate, betas=(.9, .98), weight_decay=.01)
    begun, step, losses = time.time(), 0, []
    while (done := (time.time() - begun) / (o.minutes * 60)) < 1:
        items, pairs, unserved, served, alike = data.batch()
        taken = {r for r, _ in pairs}
        texts = [r for r, _ in pairs] + unserved
        requests = asked[texts] if symbols else model([asked[r] for r in texts])
        every = SCALE * requests @ model(tokens([form(i, taken) for i in items], 72)).T
        cosines, right = every[:len(pairs)], torch.tensor([place for _, place in pairs])
        own = F.one_hot(right, len(items)).bool()
        loss = F.cross_entropy(cosines.masked_fill(served & ~own, -1e4), right)
        others = torch.logsumexp(cosines.masked_fill(served, -1e4), 0)[right]
        loss = loss + WEIGHT * F.softplus(others - cosines[own]).mean()
        if not symbols:
            loss = loss + NONE * none_loss(every, right, served, alike)
        for group in optimizer.param_groups:
            group["lr"] = o.rate * min(1, (step + 1) / 30) * .5 * (1 + np.cos(np.pi * done))
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
