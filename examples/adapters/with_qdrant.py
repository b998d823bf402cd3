"""Qdrant's local mode, in memory, over cairn's vectors: pip install qdrant-client"""

import time
from importlib.metadata import version

from qdrant_client import QdrantClient, models

import exchange

corpus = exchange.open_set()
client = QdrantClient(":memory:")
start = time.perf_counter()
client.create_collection("passages", vectors_config=models.VectorParams(size=corpus.dimension, distance=models.Distance.COSINE))
step = 1000
for at in range(0, len(corpus.passages), step):
    batch = corpus.passages[at : at + step]
    client.upsert("passages", [models.PointStruct(id=at + i, vector=p.vector.tolist()) for i, p in enumerate(batch)])
seconds = time.perf_counter() - start
depth = min(300, len(corpus.passages))


def search(query):
    found = client.query_points("passages", query=query.vector.tolist(), limit=depth, with_payload=False).points
    return corpus.best_of((p.id, p.score) for p in found)


corpus.answer(search, "qdrant-client local " + version("qdrant-client"), seconds, embeds=True)
