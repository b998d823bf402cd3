#!/usr/bin/env python3
"""Compares cairn's embedder with ONNX Runtime on the same model file and texts.

    pip install onnxruntime tokenizers numpy
    python3 benchmarks/embedding/compare.py --model DIR --texts FILE [--threads 2] [--rounds 7] [--command "go run ./benchmarks/measure embedding"]

FILE holds a JSON string a line. The two alternate, round by round, and the
ratio is taken within each round, so that other load on the machine meets both.
ONNX Runtime is given its best batch size of those tried, batches sorted by
length; tokenising is part of both sides' time, as it is part of the work.

With --processor and one thread, the engines alternate after each --group of texts, and the
texts of a second of processor time are compared (on Linux). The speed of a shared machine
then hardly changes the ratio. --openvino adds OpenVINO in bfloat16 with float32 weights
(pip install openvino; model.safetensors as in models/minilm/SOURCE.md).
"""
import argparse, glob, json, os, shlex, statistics, subprocess, sys, time
import numpy as np, onnxruntime, tokenizers

QUERY = "how does the server decide which pod runs first every day"

class Runtime:
    def __init__(self, folder, threads, longest, pooling):
        o = onnxruntime.SessionOptions()
        o.intra_op_num_threads, o.inter_op_num_threads = threads, 1
        o.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), o, providers=["CPUExecutionProvider"])
        self.tokenizer = tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(longest)
        self.pooling = pooling

    def states(self, ids, mask):
        return self.session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})[0]

    def embed(self, texts, batch):
        ids = [e.ids for e in self.tokenizer.encode_batch(texts)]
        out = np.empty((len(ids), 384), np.float32)
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        for at in range(0, len(order), batch):
            some = order[at:at + batch]
            longest = max(len(ids[i]) for i in some)
            a = np.zeros((len(some), longest), np.int64)
            mask = np.zeros_like(a)
            for r, i in enumerate(some):
                a[r, :len(ids[i])], mask[r, :len(ids[i])] = ids[i], 1
            h = self.states(a, mask)
            if self.pooling == "cls":
                v = h[:, 0]
            else:
                v = (h * mask[:, :, None]).sum(1) / mask.sum(1)[:, None]
            out[some] = v / np.linalg.norm(v, axis=1, keepdims=True)
        return out

    def rate(self, texts, batch):
        start = time.perf_counter()
        self.embed(texts, batch)
        return len(texts) / (time.perf_counter() - start)

    def latency(self, n=200):
        times = []
        for _ in range(n):
            start = time.perf_counter()
            self.embed([QUERY], 1)
            times.append(time.perf_counter() - start)
        return 1e3 * statistics.median(times)

class OpenVINO(Runtime):
    def __init__(self, weights, runtime):
        import openvino, openvino_model
        self.tokenizer, self.pooling = runtime.tokenizer, runtime.pooling
        self.request = openvino.Core().compile_model(openvino_model.build(weights), "CPU", {
            "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "bf16"}).create_infer_request()

    def states(self, ids, mask):
        return self.request.infer([ids, mask])[0]

def processor(peers, texts, command, rounds, group):
    """Prints texts a second of processor time. The engines alternate after each group of texts."""
    def spent(pid):
        return sum(int(open(f).read().split()[0]) for f in glob.glob("/proc/%s/task/*/schedstat" % pid)) / 1e9
    def used(pid, f, *args):
        start = spent(pid)
        f(*args)
        return spent(pid) - start
    def ask(some):
        cairn.stdin.write(json.dumps(some) + "\n")
        cairn.stdin.flush()
        cairn.stdout.readline()
    best = {}
    for name, peer in peers.items():
        sizes = sorted({1, min(8, group), group})
        best[name] = min(sizes, key=lambda b: min(sum(used("self", peer.embed, texts[at:at + group], b) for at in range(0, len(texts), group)) for _ in range(2)))
    print("groups of %d texts, batches: %s" % (group, best), flush=True)
    ratios, cairn = {name: [] for name in peers}, subprocess.Popen(command + ["-turns"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for r in range(-1, rounds):
        ours, theirs = 0.0, dict.fromkeys(peers, 0.0)
        for at in range(0, len(texts), group):
            some = texts[at:at + group]
            ours += used(cairn.pid, ask, some)
            for name, peer in peers.items():
                theirs[name] += used("self", peer.embed, some, best[name])
        if r < 0: # a warm-up
            continue
        for name, t in theirs.items():
            ratios[name].append(t / ours)
        print("round %d: texts a processor second: cairn %.1f, %s" % (r, len(texts) / ours, ", ".join(
            "%s %.1f (%.2f)" % (name, len(texts) / t, t / ours) for name, t in theirs.items())), flush=True)
    cairn.stdin.close()
    for name, of in ratios.items():
        print("%s: median ratio %.2f (%.2f to %.2f)" % (name, statistics.median(of), min(of), max(of)))

def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", required=True)
    p.add_argument("--texts", required=True)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--longest", type=int, default=256, help="must equal max_tokens of the model's cairn.json")
    p.add_argument("--pooling", default="mean", choices=["mean", "cls"])
    p.add_argument("--command", default="go run ./benchmarks/measure embedding")
    p.add_argument("--processor", action="store_true", help="compare processor time; needs --threads 1")
    p.add_argument("--group", type=int, default=1, help="texts of a turn with --processor")
    p.add_argument("--openvino", metavar="WEIGHTS", help="model.safetensors for OpenVINO, with --processor")
    a = p.parse_args()
    if a.processor and a.threads != 1:
        p.error("--processor needs --threads 1: waiting threads use processor time too")
    texts = [json.loads(line) for line in open(a.texts, encoding="utf-8")]
    runtime = Runtime(a.model, a.threads, a.longest, a.pooling)
    runtime.embed(texts[:64], 8)
    command = shlex.split(a.command) + ["-model", a.model, "-texts", a.texts, "-threads", str(a.threads)]
    if a.processor:
        peers = {"ONNX Runtime": runtime}
        if a.openvino:
            peers["OpenVINO"] = OpenVINO(a.openvino, runtime)
        return processor(peers, texts, command, a.rounds, a.group)
    # Twice each in turn, the better counts: the machine may be shared.
    tried = {b: 0.0 for b in (1, 8, 32)}
    for _ in range(2):
        for b in tried:
            tried[b] = max(tried[b], runtime.rate(texts, b))
    best = max(tried, key=tried.get)
    print("onnxruntime %s, threads %d, texts/s by batch size: %s" % (
        onnxruntime.__version__, a.threads, ", ".join("%d: %.1f" % t for t in tried.items())))
    rates, latencies = [], []
    for r in range(a.rounds):
        order = [0, 1] if r % 2 else [1, 0]
        got = {}
        for side in order:
            if side == 0:
                got["runtime"] = (runtime.rate(texts, best), runtime.latency())
            else:
                c = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
                got["cairn"] = (c["texts_per_second"], c["query_p50_ms"])
        (x, q), (y, s) = got["cairn"], got["runtime"]
        rates.append(x / y)
        latencies.append(q / s)
        print("round %d: texts/s %.1f / %.1f = %.2f   query p50 ms %.3f / %.3f = %.2f" % (r, x, y, x / y, q, s, q / s), flush=True)
    print("%s, threads %d, %d pieces a text: median ratio texts/s %.2f (%.2f to %.2f), query of %d pieces %.2f (%.2f to %.2f)" % (
        c["kernel"], a.threads, c["tokens"] // c["texts"], statistics.median(rates), min(rates), max(rates),
        c["query_tokens"], statistics.median(latencies), min(latencies), max(latencies)))

if __name__ == "__main__":
    sys.exit(main())
