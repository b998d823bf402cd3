"""Reads and writes the folder through which cairn bench measures another system.

docs/measure.md describes its files. An adapter is

    set = exchange.open_set()
    ...                                       # build an index of set.passages
    set.answer(lambda query: [(document, score), ...], program, seconds)

where a query has text, vector and embed_ms. Systems that find passages give a document
the score of its best one: best_of does that.
"""

import json
import sys
import time
from array import array
from pathlib import Path


class Row:
    def __init__(self, **fields):
        self.__dict__.update(fields)


class Set:
    def __init__(self, folder):
        self.folder = Path(folder)
        about = json.loads((self.folder / "set.json").read_text())
        self.dimension, self.depth, self.documents = about["dimension"], about["depth"], Path(about["documents"])
        self.files = self._rows("files.jsonl")
        self.passages = self._rows("passages.jsonl", "passages.f32")
        self.queries = self._rows("queries.jsonl", "queries.f32")

    def _rows(self, name, vectors=None):
        with open(self.folder / name, encoding="utf-8") as lines:
            rows = [Row(**json.loads(line)) for line in lines]
        if vectors:
            floats = array("f")
            floats.frombytes((self.folder / vectors).read_bytes())
            if sys.byteorder == "big":
                floats.byteswap()
            for i, row in enumerate(rows):
                row.vector = floats[i * self.dimension : (i + 1) * self.dimension]
        return rows

    def best_of(self, found):
        """Documents of (number of a passage, score), each with its best passage's score."""
        best = {}
        for number, score in found:
            document = self.passages[number].document
            if score > best.get(document, float("-inf")):
                best[document] = score
        return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[: self.depth]

    def answer(self, search, program, seconds, embeds=False):
        """Answers all queries one at a time. embeds: search uses the query's vector."""
        if self.queries:
            search(self.queries[0])  # warms up
        with open(self.folder / "run", "w", encoding="utf-8") as run, open(self.folder / "times.tsv", "w", encoding="utf-8") as times:
            for query in self.queries:
                start = time.perf_counter()
                ranking = search(query)
                ms = (time.perf_counter() - start) * 1000 + (query.embed_ms if embeds else 0)
                times.write(f"{query.query}\t{ms:.3f}\n")
                for rank, (document, score) in enumerate(ranking, 1):
                    run.write(f"{query.query} Q0 {document} {rank} {score:.7g} adapter\n")
        about = {"program": program, "index_seconds": round(seconds, 3)}
        (self.folder / "system.json").write_text(json.dumps(about))


def open_set():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER, as cairn bench docs --adapter calls it")
    return Set(sys.argv[1])
