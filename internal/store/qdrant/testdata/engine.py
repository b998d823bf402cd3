"""Puts the operations of TestEngine to Qdrant's own engine and checks the same
answers. Needs qdrant-edge-py 0.9.0 from PyPI: python3 engine.py
"""
import tempfile
import qdrant_edge as q

config = q.EdgeConfig(
    vectors={"embedding": q.EdgeVectorParams(2, q.Distance.Cosine)},
    sparse_vectors={"words": q.EdgeSparseVectorParams(modifier=q.Modifier.Idf)},
)
words = q.Query.Nearest(q.SparseVector([1, 2], [1, 1]), "words")
dense = q.Query.Nearest([1, 0], "embedding")
exact = q.SearchParams(exact=True, quantization=q.QuantizationSearchParams(ignore=True))


def check(what, got, want):
    got = [(p.id, round(p.score, 4)) for p in got] if isinstance(got, list) else got
    assert got == want, f"{what}: {got}, want {want}"


with tempfile.TemporaryDirectory() as d:
    s = q.EdgeShard.create(d, config)
    s.update(q.UpdateOperation.upsert_points([
        q.Point(1, {"embedding": [1, 0], "words": q.SparseVector([1, 2], [0.5, 0.5])}),
        q.Point(2, {"embedding": [0, 1], "words": q.SparseVector([1], [0.9])}),
        q.Point(3, {"words": q.SparseVector([2], [0.7])}),
        q.Point(4, {"embedding": [0.6, 0.8]}),
        q.Point(5, {}),
    ]))
    check("nearest", s.query(q.QueryRequest(limit=10, query=dense)), [(1, 1.0), (4, 0.6), (2, 0.0)])
    check("words", s.query(q.QueryRequest(limit=10, query=words)), [(1, 0.47), (2, 0.423), (3, 0.329)])
    for n in (2, 9):
        found = s.query(q.QueryRequest(limit=4 * n, query=dense, prefetches=[q.Prefetch(limit=n, query=words)], params=exact))
        check(f"cosines of {n} by words", found, [(1, 1.0), (2, 0.0)])
    check("points", s.count(q.CountRequest()), 5)
    check("points with a vector", s.count(q.CountRequest(True, q.Filter(must=[q.HasVectorCondition("embedding")]))), 3)
    s.update(q.UpdateOperation.update_vectors([q.PointVectors(1, {"words": q.SparseVector([1, 2], [0.1, 0.1])})]))
    check("other words", s.query(q.QueryRequest(limit=10, query=words)), [(2, 0.423), (3, 0.329), (1, 0.094)])
    check("the same vectors", s.query(q.QueryRequest(limit=10, query=dense)), [(1, 1.0), (4, 0.6), (2, 0.0)])
    s.update(q.UpdateOperation.upsert_points([q.Point(1, {"words": q.SparseVector([1], [0.2])})]))
    check("a point replaced", s.query(q.QueryRequest(limit=10, query=dense)), [(4, 0.6), (2, 0.0)])
    try:
        s.update(q.UpdateOperation.update_vectors([q.PointVectors(77, {"words": q.SparseVector([1], [1])})]))
        raise AssertionError("words of a point that does not exist were taken")
    except Exception as e:
        assert "No point with id 77" in str(e), e
print("the engine answers as TestEngine expects")
