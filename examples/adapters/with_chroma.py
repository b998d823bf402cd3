"""Chroma in memory over cairn's vectors: pip install chromadb"""

import time
from importlib.metadata import version

import chromadb

import exchange

corpus = exchange.open_set()
client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
start = time.perf_counter()
collection = client.create_collection("passages", metadata={"hnsw:space": "cosine"})
step = 5000  # Chroma refuses larger batches
for at in range(0, len(corpus.passages), step):
    batch = corpus.passages[at : at + step]
    collection.add(ids=[str(at + i) for i in range(len(batch))], embeddings=[p.vector.tolist() for p in batch], documents=[p.text for p in batch])
seconds = time.perf_counter() - start
depth = min(300, len(corpus.passages))


def search(query):
    found = collection.query(query_embeddings=[query.vector.tolist()], n_results=depth, include=["distances"])
    return corpus.best_of((int(n), 1 - d) for n, d in zip(found["ids"][0], found["distances"][0]))


corpus.answer(search, "chromadb " + version("chromadb"), seconds, embeds=True)
