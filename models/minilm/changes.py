#!/usr/bin/env python3
"""Writes tools.lora or symbols.lora: changes of the weights of all-MiniLM-L6-v2.

    pip install torch numpy onnx tokenizers
    python3 changes.py --graph model_quantized.onnx --tokenizer tokenizer.json --data FILE --minutes 56 --out tools.lora

FILE holds catalogues of tools, or packages of source code, a JSON object a line:

    {"tools": [{"name": "…", "description": "…", "server": "…", "inputs": ["…"]}],
     "requests": [{"text": "…", "items": [0]}]}
    {"tools": […], "requests": [{"text": "…", "parts": [[0, 12, 3], [17, 40, 5]]}]}
    {"symbols": [{"text": "…", "bare": "…"}], "requests": [{"text": "…", "items": [0], "comment": true}]}

where items are the positions of the right tools or symbols, and a part is its first character,
the one after its last, and the position of its tool. The words of a name are
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
the same tool. The vector of a part is the mean of the states of its tokens in the whole
request. A linear layer, which is not kept, finds the parts from these states: a token is
outside, begins a part or is inside. Its cross entropy is half as heavy. To the requests with parts come as many made of two or three
others. Requests for symbols keep the vectors of the model without changes, since
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
OUTSIDE, BEGINS, INSIDE = range(3)
JOINTS = [" and ", ", and ", ", then ", " and then ", ". Then ", ". ", ". Also ", ", also ", "; ", ", ", " - ", ", after that ", ". After that ", ". And ",
          " so that you can ", " plus ", ", once that's done ", ". Once you have it, "]


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
        self.roles = torch.nn.Linear(HIDDEN, 3)
        self.changes = [p for layer in self.layers for name in LINEARS for p in layer[name][2:]]

    def __call__(self, texts, changed=2.0):
        """The vectors of texts. Texts of similar length go through the network together."""
        order = np.argsort([len(t) for t in texts])
        parts = [self.part([texts[i] for i in some], changed) for some in np.array_split(order, max(1, len(texts) // 32))]
        return torch.cat(parts)[torch.from_numpy(np.argsort(order))]

    def part(self, texts, changed):
        states, mask = self.states(texts, changed)
        return F.normalize((states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True), dim=-1)

    def states(self, texts, changed=2.0):
        """The states of the tokens of texts, and a mask of those that are not padding."""
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
        return x.float(), mask

    def vectors(self, texts):
        """The vectors of texts without the changes."""
        order, out = np.argsort([len(t) for t in texts]), np.zeros((len(texts), HIDDEN), np.float32)
        with torch.no_grad():
            for i in range(0, len(order), 128):
                out[order[i:i + 128]] = self([texts[j] for j in order[i:i + 128]], 0).numpy()
        return out

    def read_parts(self, texts, spans):
        """The vectors of the spans of tokens of each text, and the logits of the roles of all tokens."""
        vectors, roles = [None] * len(texts), [None] * len(texts)
        for some in np.array_split(np.argsort([len(t) for t in texts]), max(1, len(texts) // 16)):
            states, _ = self.states([texts[i] for i in some])
            for x, i in zip(states, some):
                end = len(texts[i]) + 1
                vectors[i] = [F.normalize((x[1 + a:1 + b] if (a, b) != (0, end - 1) else x[:end + 1]).mean(0), dim=-1) for a, b in spans[i]]
                roles[i] = self.roles(x[1:end])
        return vectors, roles

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


def joined(requests):
    """A request made of two or three of others, most of them for tools of one catalogue."""
    at = random.randrange(len(requests))
    chosen = [requests[at]]
    near = [r for r in requests[max(0, at - 40):at + 40] if r[2] == chosen[0][2]]
    for _ in range(random.choice([1, 1, 1, 2])):
        r = random.choice(near if random.random() < .6 else requests)
        if all(r[1] != c[1] for c in chosen):
            chosen.append(r)
    text, parts = "", []
    for n, r in enumerate(chosen):
        words = r[0].strip()
        if n > 0:
            asks = text[-1] in "?!"
            joint = random.choice([" ", " And ", " Then "] if asks else JOINTS)
            text = (text if asks else text.rstrip(".")) + joint
            if joint.rstrip()[-1:] not in (".", "") and words[1:2].islower():
                words = words[0].lower() + words[1:]
        parts.append((len(text), len(text) + len(words), r))
        text += words
    return text, parts


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

    # A request is its text, its items, the range of their catalogue, comment, and its parts with a request each.
    items, requests, several, said = [], [], [], {}
    for line in open(o.data):
        c, first = json.loads(line), len(items)
        items += c.get("tools") or c["symbols"]
        end = len(items)
        for r in c["requests"]:
            if "parts" in r:
                several.append((r["text"], [(a, b, (r["text"], [first + t], first, end, None)) for a, b, t in r["parts"]]))
                continue
            for t in r["items"]:
                said.setdefault(first + t, []).append(r["text"])
            requests.append((r["text"], [first + t for t in r["items"]], first, end, r.get("comment")))
    symbols = "bare" in items[0]
    several += [joined(requests) for _ in several]
    batch_size, hard = (48, 3) if symbols else (64, 2)
    model = Encoder(o.graph)
    if o.init:
        model.read(o.init)
    start = model.products()
    near_items = model.vectors(tokens([text_of(t, "") for t in items], 88))
    near_requests = model.vectors(tokens([r[0] for r in requests], 44)) if symbols else None

    def spans(text, parts):
        """The tokens of a text, those of its parts, and the roles of all of them."""
        e = tokenizer.encode(text)
        offsets, ids = e.offsets[1:-1][:90], e.ids[1:-1][:90]
        roles, found = np.full(len(ids), OUTSIDE), []
        for a, b, _ in parts:
            inside = [k for k, (x, y) in enumerate(offsets) if a <= x < y <= b] or [0]
            roles[inside], roles[inside[0]] = INSIDE, BEGINS
            found.append((inside[0], inside[-1] + 1))
        return ids, found, roles

    def asked(batch):
        """The vectors of requests and parts, and the loss of the roles. A request is read once for all its parts."""
        if symbols:
            return torch.from_numpy(near_requests[[e for e, _ in batch]]), 0
        at = {key: i for i, key in enumerate(dict.fromkeys((e, part is None) for e, part in batch))}
        texts, places, wanted = zip(*(spans(requests[e][0], [(0, len(requests[e][0]), None)]) if whole else spans(*several[e]) for e, whole in at))
        vectors, roles = model.read_parts(texts, places)
        return torch.stack([vectors[at[e, part is None]][part or 0] for e, part in batch]), F.cross_entropy(torch.cat(roles), torch.from_numpy(np.concatenate(wanted)))

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

    optimizer = torch.optim.AdamW([{"params": model.changes, "times": 1}, {"params": model.roles.parameters(), "times": 6}], lr=o.rate, weight_decay=.01)
    begun, step, losses, queue = time.time(), 0, [], []
    while (done := (time.time() - begun) / (o.minutes * 60)) < 1:
        batch = []  # a request, and one of its parts; None for a request without parts
        while len(batch) < batch_size:
            if several and random.random() < .5:
                e = random.randrange(len(several))
                batch += [(e, n) for n in range(len(several[e][1]))]
                continue
            queue = queue or shuffled()
            batch.append((queue.pop(), None))
        of = [requests[e] if n is None else several[e][1][n][2] for e, n in batch]
        right = [random.choice(r[1]) for r in of]
        candidates = list(right)
        for (e, _), r, item in zip(batch, of, right):
            _, own, first, end, _ = r
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
        mask = torch.tensor([[j != i and bool(c in r[1] or c == right[i] or alike[i, j]) for j, c in enumerate(candidates)]
                             for i, r in enumerate(of)])
        of += [(None, None)] * (len(candidates) - len(of))
        words = [form(c, r[0], r[-1]) for c, r in zip(candidates, of)]
        vectors, roles = asked(batch)
        loss = F.cross_entropy((SCALE * vectors @ model(tokens(words, 88)).T).masked_fill(mask, -1e4), torch.arange(len(batch))) + .5 * roles
        for group in optimizer.param_groups:
            group["lr"] = group["times"] * o.rate * min(1, (step + 1) / 40) * .5 * (1 + np.cos(np.pi * done))
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
