#!/usr/bin/env python3
"""Writes pairs.lora: changes of model.onnx that read a request, alone or together with a tool.

    pip install torch numpy onnx tokenizers
    python3 pairs.py --data FILE --minutes 5 --out pairs.lora

FILE is JSON, with the servers and their tools, the requests for one tool by its place in the
server ("one"), those that no tool of the server serves ("none"), and those with several parts
("many": the whole request, and the text, server and tool of each part), and requests with their
parts in double brackets ("marked"):

    {"servers": [{"name": "…", "weight": 1.4, "tools": [{"name": "…", "server": "…", "description": "…", "inputs": ["…"]}],
                  "one": [["…", 0]], "none": ["…"]}],
     "many": [["…", [["…", 0, 3]]]],
     "marked": ["[[star the repo]] and [[close 5]]"]}

The words of a name are separated by blanks. The model reads [CLS] request [SEP] tool [SEP], the
tool with the second token type, and a linear layer over the mean of the states gives the logit of
the pair. A part is read alone or, in half of the lists, followed by "|" and the whole request. Every
matrix W of the six layers becomes W + AB, where A has RANK columns; --init names the file to start
from. An example is a list of up to EIGHT tools and none, whose logit is 0: the right tool, most of
the others from the ten of the same server that are nearest to the request by tools.lora, the rest the
nearest ones of eight random servers. In one list of eight the right tool and those like it are hidden,
and none is right. The loss is the cross entropy over the list. A tool may lack its server, its
inputs, or the end of its description.

The same model splits a request: from the state of each word's first piece, three further outputs of
the linear layer tell whether the word begins a part, continues one or belongs to none. With the
twelve weights of a first tag and of a tag after another they are a conditional random field
(Lafferty, McCallum and Pereira, ICML 2001), whose mean negative log likelihood is added to the
loss. "|" stands between two lines. One marked request in SOME is read as a list of its parts. One
in SOME is read as the verb of another one "and" its first part, as its first part and that of the
other in two sentences, and as one of them "after" or "before" the other. Some pieces are masked.
"""
import argparse, collections, gzip, json, random, struct, time
import numpy as np, onnx, tokenizers, torch
import torch.nn.functional as F

LAYERS, HIDDEN, HEADS, RANK, RATE = 6, 384, 12, 32, 1e-3
LISTS, EIGHT = 96, 8  # of a step, and the tools of a list
REQUEST, TOOL, DESCRIPTION, INPUTS = 64, 80, 280, 12  # the most word pieces, letters and inputs
HIDE, ALIKE, SAME, ELSEWHERE = .12, .7, .97, .85  # share of lists without the right tool; cosines of tools
LINEARS = ["query", "key", "value", "output", "up", "down"]  # the order in the graph and in the file
NAMES = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
         "intermediate.dense", "output.dense"]
CLS, SEP, MASK, BAR = 101, 102, 103, 1064
BEGINS, WITHIN, OUTSIDE = range(3)  # tags of words
MARKED, PIECES, SOME, MASKED = 48, 200, 20, .06  # marked requests of a step, their most pieces, share of masked ones
COMMON = 20  # the names of so many tools begin with a verb


class Network(torch.nn.Module):
    """model.onnx in bfloat16 with changes of low rank, which start at none, and the layer above."""

    def __init__(self, graph, device):
        super().__init__()
        raw = {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(graph).graph.initializer}

        def tensor(x, dtype=torch.float32):
            return torch.tensor(np.ascontiguousarray(x), dtype=dtype, device=device)

        def norm(name):
            return tensor(raw[name + ".LayerNorm.weight"]), tensor(raw[name + ".LayerNorm.bias"])

        self.words = tensor(raw["embeddings.word_embeddings.weight_quantized"] * raw["embeddings.word_embeddings.weight_scales"])
        self.positions, self.types = (tensor(raw[f"embeddings.{k}_embeddings.weight"]) for k in ("position", "token_type"))
        self.norm, self.layers, self.device = norm("embeddings"), [], device
        products = sorted({int(k.split("_")[1]) for k in raw if k.startswith("onnx::MatMul_")})
        rng = np.random.default_rng(0)
        for l in range(LAYERS):
            at, layer = f"encoder.layer.{l}.", {}
            layer["norms"] = norm(at + "attention.output"), norm(at + "output")
            for i, name in enumerate(NAMES):
                base = f"onnx::MatMul_{products[6 * l + i]}_"
                w, bias = raw[base + "quantized"] * raw[base + "scale"], raw[at + name + ".bias"]
                scaled = at + (NAMES[0] if i < 3 else name) + ".input"
                if scaled + ".factor" in raw:  # the layer reads (x + shift) * factor
                    w = w * raw[scaled + ".factor"][:, None]
                    bias = bias + raw[scaled + ".shift"] @ w
                a = torch.nn.Parameter(tensor(rng.normal(0, 1 / np.sqrt(w.shape[0]), (RANK, w.shape[0]))))
                layer[LINEARS[i]] = tensor(w.T), tensor(bias, torch.bfloat16), a, torch.nn.Parameter(torch.zeros((w.shape[1], RANK), device=device))
            self.layers.append(layer)
        self.changes = torch.nn.ParameterList([p for layer in self.layers for n in LINEARS for p in layer[n][2:]])
        self.head, self.bias = (torch.nn.Parameter(torch.zeros(n, device=device)) for n in ((4, HIDDEN), 4))
        self.steps = torch.nn.Parameter(torch.zeros((4, 3), device=device))  # of the first tag, and after each tag

    def merged(self):
        return [{n: (w + 2 * b @ a).to(torch.bfloat16) for n in LINEARS for w, _, a, b in [layer[n]]} for layer in self.layers]

    def states(self, ids, mask, types, merged):
        """The states of each text."""
        def linear(x, name):
            return F.linear(x, merged[l][name], layer[name][1])

        def normed(x, norm):
            return F.layer_norm(x, (HIDDEN,), *(p.to(x.dtype) for p in norm), 1e-12)

        ids, mask, types = (x.to(self.device, non_blocking=True) for x in (ids, mask, types))
        n, longest = ids.shape
        x = normed(self.words[ids] + self.positions[:longest] + self.types[types], self.norm).to(torch.bfloat16)
        hidden = torch.zeros((n, 1, 1, longest), dtype=x.dtype, device=self.device).masked_fill(~mask[:, None, None], -1e4)
        for l, layer in enumerate(self.layers):
            q, k, v = (linear(x, name).view(n, longest, HEADS, -1).transpose(1, 2) for name in LINEARS[:3])
            heads = F.scaled_dot_product_attention(q, k, v, attn_mask=hidden.expand(n, HEADS, longest, longest))
            x = normed(x + linear(heads.transpose(1, 2).reshape(n, longest, HIDDEN), "output"), layer["norms"][0])
            x = normed(x + linear(F.gelu(linear(x, "up")), "down"), layer["norms"][1])
        return x.float()

    def means(self, ids, mask, types, merged):
        """The mean state of each text."""
        weights = mask.to(self.device)[..., None].float()
        return (self.states(ids, mask, types, merged) * weights).sum(1) / weights.sum(1)

    def surprise(self, batch, firsts, tags, merged):
        """The mean negative log likelihood of the tags of texts. Words after the end have no tag (-1)."""
        tags, firsts = tags.to(self.device), firsts.to(self.device)
        states = self.states(*batch, merged)
        states = states.gather(1, firsts[..., None].expand(-1, -1, HIDDEN))
        scores, there = states @ self.head[1:].T + self.bias[1:], tags >= 0
        known = tags.clamp(min=0)
        right = (scores.gather(2, known[..., None])[..., 0] * there).sum(1) + self.steps[0][known[:, 0]]
        right = right + (self.steps[1:][known[:, :-1], known[:, 1:]] * there[:, 1:]).sum(1)
        never = torch.zeros((4, 3), device=self.device)
        never[0, WITHIN] = never[1 + OUTSIDE, WITHIN] = -1e4
        steps = self.steps + never
        # The logarithms of the sums over all tags between two words, as products of matrices in pairs.
        none = torch.full((3, 3), -1e4, device=self.device).fill_diagonal_(0)
        sums = torch.where(there[:, 1:, None, None], steps[1:] + scores[:, 1:, None], none)
        while sums.shape[1] > 1:
            if sums.shape[1] % 2:
                sums = torch.cat([sums, none.expand(len(sums), 1, 3, 3)], 1)
            sums = torch.logsumexp(sums[:, ::2, :, :, None] + sums[:, 1::2, None], 3)
        sums = scores[:, 0] + steps[0] + (torch.logsumexp(sums[:, 0], 2) if sums.shape[1] else 0)
        return (torch.logsumexp(sums, 1) - right).mean()

    def read(self, path, pairs):
        """Sets the changes, and with pairs also the layer above, to those of a file."""
        with open(path, "rb") as f, torch.no_grad():
            def vector(size):
                scale, = struct.unpack("<f", f.read(4))
                return torch.from_numpy(np.frombuffer(f.read(size), np.int8) * np.float32(scale)).to(self.device)
            if pairs:
                size, = struct.unpack("<I", f.read(4))
                for row in range(4):
                    self.head[row] = vector(size)
                    self.bias[row], = struct.unpack("<f", f.read(4))
                self.steps.copy_(torch.tensor(struct.unpack("<12f", f.read(48))).view(4, 3))
            rank, = struct.unpack("<I", f.read(4))
            for layer in self.layers:
                for name in LINEARS:
                    a, b = layer[name][2:]
                    for r in range(rank):
                        a[r], b[:, r] = vector(a.shape[1]) / 2, vector(b.shape[0])

    def write(self, path):
        with open(path, "wb") as out:
            def vector(v):
                scale = np.abs(v).max() / 127 or 1e-9
                out.write(struct.pack("<f", scale) + np.rint(v / scale).astype(np.int8).tobytes())
            out.write(struct.pack("<I", HIDDEN))
            for row, bias in zip(self.head.detach().cpu().numpy(), self.bias):
                vector(row)
                out.write(struct.pack("<f", bias.item()))
            out.write(struct.pack("<12fI", *self.steps.flatten().tolist(), RANK))
            for layer in self.layers:
                for a, b in (layer[n][2:] for n in LINEARS):
                    # Orthogonal vectors of decreasing size, which 8 bits represent best.
                    u, s, v = (x.cpu().numpy() for x in torch.linalg.svd((2 * b.detach().double() @ a.detach().double()).T, full_matrices=False))
                    for r in range(RANK):
                        vector(u[:, r] * np.sqrt(s[r]))
                        vector(v[r] * np.sqrt(s[r]))


def padded(texts):
    """The ids, mask and token types of texts, each with the place of the second type's first token."""
    longest = (max(len(t) for t, _ in texts) + 7) // 8 * 8
    ids, types, mask = (np.zeros((len(texts), longest), t) for t in (np.int64, np.int64, bool))
    for i, (t, second) in enumerate(texts):
        ids[i, :len(t)], mask[i, :len(t)], types[i, second:len(t)] = t, True, 1
    return tuple(torch.from_numpy(x) for x in (ids, mask, types))


def text_of(tool, description, server, inputs):
    text = (tool["server"] + ": " if server and tool["server"] else "") + tool["name"]
    if description and tool["description"]:
        d = tool["description"]
        text += ". " + " ".join((d[:DESCRIPTION] if description == "long" else d.split(". ")[0][:200]).split())
    return text + (" | " + ", ".join(tool["inputs"][:INPUTS]) if inputs and tool["inputs"] else "")


def parts_of(text):
    """A request in plain text and the place of each part."""
    pieces = text.replace("]]", "[[").split("[[")
    ends = np.cumsum([0] + [len(p) for p in pieces])
    return "".join(pieces), [(ends[i], ends[i + 1]) for i in range(1, len(pieces), 2)]


class Marked(torch.utils.data.IterableDataset):
    """Batches of marked requests: the texts, the place of each word's first piece, and the tags."""

    def __init__(self, data, tokenizer):
        self.requests, self.tokenizer = data["marked"], tokenizer
        names = collections.Counter(t["name"].split(" ")[0] for s in data["servers"] for t in s["tools"])
        self.verbs = {v for v, n in names.items() if n >= COMMON}

    def varied(self, text, chance):
        """A marked request, or one made from its parts."""
        words, places = parts_of(text)
        parts = [words[a:b] for a, b in places]
        form = chance.random() * SOME
        if form < 1 and len(parts) > 1:
            lead = chance.choice(["%d. ", "- ", "%d) ", ""])
            return "\n".join(lead.replace("%d", str(i + 1)) + "[[" + p + "]]" for i, p in enumerate(parts))
        other, at = parts_of(chance.choice(self.requests))
        other = other[at[0][0]:at[0][1]]
        verb, first = (p.split(" ")[0].lower() for p in (parts[0], other))
        if form < 1 or form >= 4 or first == verb or not {first, verb} <= self.verbs:
            return text
        if form < 2:
            return f"[[{first}]] and [[{parts[0]}]]"
        if form < 3:
            return f"[[{parts[0]}]]. [[{other}]]."
        order = chance.choice(["after", "before"])
        doing = chance.choice(["you " + other, first.removesuffix("e") + "ing" + other[len(first):]])
        return chance.choice([f"[[{parts[0]}]] {order} [[{doing}]]", f"{order.title()} [[{doing}]], [[{parts[0]}]]"])

    def read(self, text):
        """The pieces of a marked request, the place of the first of each word, and the tags."""
        text, parts = parts_of(text)
        ids, firsts, tags, last, at = [CLS], [], [], None, 0
        for line in text.split("\n"):
            words = line.split()
            if words and len(ids) > 1:
                ids.append(BAR)
            for e in self.tokenizer.encode_batch(words, add_special_tokens=False):
                at = text.index(words[0], at)
                start, end = at, at + len(words.pop(0))
                at = end
                tag, part = OUTSIDE, next((n for n, (a, b) in enumerate(parts) if 2 * (min(end, b) - max(start, a)) > end - start), None)
                if part is not None:
                    tag = WITHIN if part == last and tags[-1] != OUTSIDE else BEGINS
                    last = part
                if len(ids) + len(e.ids) >= PIECES:
                    return ids + [SEP], firsts, tags
                firsts.append(len(ids) if e.ids else len(ids) - 1)
                tags.append(tag)
                ids += e.ids
        return ids + [SEP], firsts, tags

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        chance = random.Random(worker.id if worker else 0)
        while True:
            yield self.batch([self.read(self.varied(chance.choice(self.requests), chance)) for _ in range(MARKED)], chance)

    @staticmethod
    def batch(some, chance=None):
        texts = []
        for ids, _, _ in some:
            share = MASKED * (chance is not None and chance.random() < .5)
            texts.append((np.array([MASK if share and i > SEP and chance.random() < share else i for i in ids]), 1 << 20))
        longest = max(len(tags) for _, _, tags in some)
        firsts, tags = np.zeros((len(some), longest), np.int64), np.full((len(some), longest), -1)
        for n, (_, f, t) in enumerate(some):
            firsts[n, :len(f)], tags[n, :len(t)] = f, t
        return padded(texts), torch.from_numpy(firsts), torch.from_numpy(tags)


class Lists(torch.utils.data.IterableDataset):
    """Batches of lists. An example is a request, the whole of which it is a part, its tool and servers."""

    def __init__(self, data, tokenizer, network):
        self.tools, self.ranges, texts, examples, weights = [], [], [], [], []

        def add(text, whole, tool, servers):
            texts.append(text)
            examples.append((len(texts) - 1, whole, tool, servers))
            weights.append((1.2 if tool < 0 else 1) * data["servers"][servers[0]]["weight"])

        for n, s in enumerate(data["servers"]):
            first = len(self.tools)
            self.tools += s["tools"]
            self.ranges.append(np.arange(first, len(self.tools)))
            for text, i in s["one"]:
                add(text, -1, first + i, [n])
            for text in s["none"]:
                add(text, -1, -1, [n])
        for whole, parts in data["many"]:
            texts.append(whole)
            at, servers = len(texts) - 1, list(dict.fromkeys(s for _, s, _ in parts))
            for text, s, i in parts:
                add(text, at if len(parts) > 1 else -1, self.ranges[s][i], servers)
        self.examples, self.chances = examples, np.cumsum(weights) / np.sum(weights)

        def tokens(texts, most):
            return [np.array(e.ids[1:-1][:most]) for e in tokenizer.encode_batch(texts)]

        self.requests = tokens(texts, REQUEST)
        self.forms = {(d, s, i): tokens([text_of(t, d, s, i) for t in self.tools], TOOL) for d in ("long", "short", "") for s in (0, 1) for i in (0, 1)}
        self.of_tools, self.of_requests = (self.vectors(network, t) for t in (self.forms["long", 0, 0], self.requests))

    @staticmethod
    def vectors(network, texts):
        out, order = np.zeros((len(texts), HIDDEN), np.float32), np.argsort([len(t) for t in texts])
        with torch.no_grad():
            merged = network.merged()
            for some in np.array_split(order, len(order) // 2048 + 1):
                batch = padded([(np.concatenate([[CLS], texts[i], [SEP]]), 1 << 20) for i in some])
                out[some] = F.normalize(network.means(*batch, merged), dim=-1).cpu().numpy()
        return out

    def example(self, rng):
        """The tools of a list and the place of the right one, EIGHT for none."""
        request, whole, right, servers = self.examples[np.searchsorted(self.chances, rng.random())]
        q, own, like = self.of_requests[request], np.concatenate([self.ranges[s] for s in servers]), []
        far = np.concatenate([self.ranges[s] for s in rng.choice(len(self.ranges), 8) if s not in servers] or [own[:0]])
        if right >= 0:
            cosines = self.of_tools[own] @ self.of_tools[right]
            like, own = own[cosines > ALIKE], own[(own != right) & (cosines < SAME)]
            far = far[self.of_tools[far] @ self.of_tools[right] < ELSEWHERE]
        own, far = (some[np.argsort(-self.of_tools[some] @ q)] for some in (own, far))
        near = own[:10]
        wrong = []
        if len(near):
            chances = 1 / np.arange(1, len(near) + 1)
            wrong = list(rng.choice(near, min(len(near), EIGHT - 2 if len(own) > 3 else len(own)), False, chances / chances.sum()))
        if len(own) > 10 and rng.random() < .5:
            wrong.append(rng.choice(own[10:]))
        if len(wrong) < EIGHT and len(far):
            wrong += list(rng.choice(far[:6], min(EIGHT - len(wrong), len(far[:6])), False))
        if right >= 0 and rng.random() >= HIDE:
            tools, place = [right, *wrong[:EIGHT - 1]], 0
        else:
            tools, place = [t for t in wrong if t not in like][:EIGHT], EIGHT
        description = rng.choice(["long", "short", ""], p=[.82, .12, .06])
        form = self.forms[str(description), int(rng.random() < .7), int(rng.random() < .6)]
        text = [[CLS], self.requests[request]]
        if whole >= 0 and rng.random() < .5:
            text += [[BAR], self.requests[whole]]
        text = np.concatenate([*text, [SEP]])
        return [(np.concatenate([text, form[t], [SEP]]), len(text)) for t in tools], place

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        rng = np.random.default_rng(worker.id if worker else 0)
        while True:
            lists = [self.example(rng) for _ in range(LISTS)]
            texts = [(t, n, k) for n, (some, _) in enumerate(lists) for k, t in enumerate(some)]
            texts.sort(key=lambda x: len(x[0][0]))
            quarters = [texts[i * len(texts) // 4:(i + 1) * len(texts) // 4] for i in range(4)]
            yield [padded([t for t, _, _ in some]) for some in quarters], torch.tensor([(n, k) for _, n, k in texts]), torch.tensor([p for _, p in lists])


def main():
    p = argparse.ArgumentParser()
    for name in ("data", "out"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--folder", default=".", help="of model.onnx, tokenizer.json and tools.lora")
    p.add_argument("--init")
    p.add_argument("--minutes", type=float, default=5)
    o = p.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with (gzip.open if o.data.endswith(".gz") else open)(o.data, "rt") as f:
        data = json.load(f)
    tokenizer = tokenizers.Tokenizer.from_file(o.folder + "/tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    network = Network(o.folder + "/model.onnx", device)
    network.read(o.folder + "/tools.lora", False)
    lists, marked = Lists(data, tokenizer, network), Marked(data, tokenizer)
    network = Network(o.folder + "/model.onnx", device)
    if o.init:
        network.read(o.init, True)
    optimizer = torch.optim.AdamW([{"params": list(network.changes), "lr": RATE, "weight_decay": .01},
                                   {"params": [network.head, network.bias, network.steps], "lr": 3 * RATE, "weight_decay": 0}], betas=(.9, .98))
    rates = [g["lr"] for g in optimizer.param_groups]
    begun, step, losses = time.time(), 0, []
    batches = zip(*(torch.utils.data.DataLoader(d, batch_size=None, num_workers=n) for d, n in ((lists, 8), (marked, 3))))
    for (quarters, at, right), (requests, firsts, tags) in batches:
        if (done := (time.time() - begun) / (o.minutes * 60)) >= 1:
            break
        merged, right = network.merged(), right.to(device)
        logits = torch.cat([network.means(*q, merged) @ network.head[0] + network.bias[0] for q in quarters])
        scores = torch.full((LISTS, EIGHT + 1), -1e4, device=device)
        scores[:, EIGHT] = 0
        of_lists = F.cross_entropy(scores.index_put((at[:, 0].to(device), at[:, 1].to(device)), logits), right)
        of_tags = network.surprise(requests, firsts, tags, merged)
        loss = of_lists + of_tags
        for group, rate in zip(optimizer.param_groups, rates):
            group["lr"] = rate * min(1, (step + 1) / 50) * (.02 + .49 * (1 + np.cos(np.pi * done)))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        step += 1
        losses.append((of_lists.item(), of_tags.item()))
        if step % 200 == 0:
            print(f"step {step}, {time.time() - begun:.0f} s, losses {np.mean(losses[-200:], 0).round(3)}", flush=True)
    network.write(o.out)


if __name__ == "__main__":
    main()
