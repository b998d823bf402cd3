"""BM25 by bm25s over cairn's passages: pip install bm25s PyStemmer"""

import time
from importlib.metadata import version

import bm25s
import Stemmer

import exchange

corpus = exchange.open_set()
stemmer = Stemmer.Stemmer("english")
start = time.perf_counter()
index = bm25s.BM25()
index.index(bm25s.tokenize([p.text for p in corpus.passages], stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)
seconds = time.perf_counter() - start
depth = min(300, len(corpus.passages))


def search(query):
    words = bm25s.tokenize(query.text, stopwords="en", stemmer=stemmer, show_progress=False, return_ids=False)
    if not words[0]:
        return []
    numbers, scores = index.retrieve(words, k=depth, show_progress=False)
    return corpus.best_of((int(n), float(s)) for n, s in zip(numbers[0], scores[0]) if s > 0)


corpus.answer(search, "bm25s " + version("bm25s"), seconds)
