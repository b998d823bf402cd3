#!/usr/bin/env python3
"""A plain exact search to measure `cairn mcp` against: ONNX Runtime and numpy.

    pip install onnxruntime tokenizers numpy
    go run ./benchmarks/measure stdio -C FOLDER -peer "python3 benchmarks/stdio/exact.py --vectors N"

It reads a query as a JSON string a line and writes the rows of the ten nearest of
N vectors as a line of JSON. The vectors are random, since what a product with all
of them costs does not depend on their values. It looks at vectors alone: no
keywords, no text, no files.
"""
import argparse, json, sys
import numpy as np, onnxruntime, tokenizers

p = argparse.ArgumentParser()
p.add_argument("--model", default="models/minilm")
p.add_argument("--vectors", type=int, required=True)
p.add_argument("--threads", type=int, default=2)
p.add_argument("--chroma", action="store_true")
a = p.parse_args()

options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.inter_op_num_threads = a.threads, 1
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
options.log_severity_level = 3
session = onnxruntime.InferenceSession(a.model + "/model.onnx", options, providers=["CPUExecutionProvider"])
tokenizer = tokenizers.Tokenizer.from_file(a.model + "/tokenizer.json")
tokenizer.no_padding()
tokenizer.enable_truncation(256)

vectors = np.random.default_rng(1).standard_normal((a.vectors, 384), dtype=np.float32)
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

if a.chroma:
    import chromadb
    collection = chromadb.EphemeralClient().create_collection("vectors", metadata={"hnsw:space": "cosine"})
    for at in range(0, a.vectors, 5000):
        some = vectors[at:at + 5000]
        collection.add(ids=[str(at + i) for i in range(len(some))], embeddings=some)

def nearest(query):
    if a.chroma:
        found = collection.query(query_embeddings=[query], n_results=10, include=["distances"])
        return [[int(i), 1 - d] for i, d in zip(found["ids"][0], found["distances"][0])]
    scores = vectors @ query
    best = np.argpartition(-scores, 10)[:10]
    return [[int(i), float(scores[i])] for i in best[np.argsort(-scores[best])]]

for line in sys.stdin:
    ids = np.array([tokenizer.encode(json.loads(line)).ids], np.int64)
    mask = np.ones_like(ids)
    hidden = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})[0]
    query = hidden[0].mean(0)
    print(json.dumps(nearest(query / np.linalg.norm(query))), flush=True)
