"""A search for the names of classes and functions: apt-get install universal-ctags

Ranks files by the number of different words of the query that a name defined in them
has, then by how much of the name that is."""

import re
import subprocess
import time
from collections import defaultdict

import exchange

corpus = exchange.open_set()
start = time.perf_counter()
documents = {f.path: f.document for f in corpus.files}


def words(text):
    return {w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text)} | {text.lower()}


command = ["ctags", "-R", "-f", "-", "--fields=", "--sort=no", "--kinds-all=*", "."]
lines = subprocess.run(command, cwd=corpus.documents, capture_output=True, text=True, errors="replace", check=True).stdout
names = defaultdict(set)
for line in lines.splitlines():
    name, path = line.split("\t")[:2]
    if path.removeprefix("./") in documents:
        names[path.removeprefix("./")].add(name)
parts = {path: [words(n) for n in all_names] for path, all_names in names.items()}
seconds = time.perf_counter() - start


def search(query):
    asked = set().union(*(words(w) for w in re.findall(r"\w+", query.text)))
    found = []
    for path, defined in parts.items():
        score = max(len(n & asked) + len(n & asked) / (len(n) + 1) for n in defined)
        if score > 0:
            found.append((documents[path], score))
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))[: corpus.depth]


program = subprocess.run(["ctags", "--version"], capture_output=True, text=True, check=True).stdout.split(",")[0]
corpus.answer(search, program, seconds)
