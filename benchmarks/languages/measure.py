"""Questions from the headings of translated documents, and their measurement.

measure.py draw DOCS OUT LANGUAGE...   writes OUT/FOLDER-LANGUAGE.tsv for the folders tutorial and
                                      advanced: 60 headings of DOCS/LANGUAGE/docs/FOLDER with the
                                      places of the same sections in English
measure.py ask URL FILE MODE           asks cairn serve at URL the questions of FILE
"""

import glob
import json
import math
import os
import random
import re
import sys
from urllib.parse import urlencode
from urllib.request import urlopen


def headings(path):
    found = {}
    for line in open(path) if os.path.exists(path) else []:
        m = re.match(r"^#{1,4} (.*?) *\{ *#([\w-]+) *\}\s*$", line)
        if m:
            found[m.group(2)] = re.sub(r"[`*]", "", m.group(1))
    return found


def draw(docs, out, *languages):
    random.seed(7)
    english = os.path.join(docs, "en", "docs")
    for folder in ("tutorial", "advanced"):
        pool = []
        for path in sorted(glob.glob(f"{english}/{folder}/**/*.md", recursive=True)):
            name = os.path.relpath(path, english)
            texts = [headings(f"{docs}/{language}/docs/{name}") for language in languages]
            pool += [(name, a, [t[a] for t in texts]) for a in texts[0] if all(a in t for t in texts)]
        random.shuffle(pool)
        seen, rows = set(), []
        for name, anchor, texts in pool:
            # A heading that is equal in two languages, short or drawn before is no question.
            if len(set(texts)) == len(texts) and len(texts[0].split()) > 2 and texts[0] not in seen and len(rows) < 60:
                seen.add(texts[0])
                rows.append((name, anchor, texts))
        for i, language in enumerate(languages):
            with open(f"{out}/{folder}-{language}.tsv", "w") as f:
                f.writelines(f"{texts[i]}\t{name}#{anchor}\n" for name, anchor, texts in rows)


def ask(url, file, mode):
    gain = first = five = n = 0
    for line in open(file):
        question, place = line.rstrip("\n").split("\t")
        query = urlencode({"q": question, "mode": mode, "limit": 10})
        results = json.load(urlopen(f"{url}/api/search?{query}"))["results"]
        documents = [r["path"] for r in results]
        places = [f"{r['path']}#{r.get('anchor', '')}" for r in results]
        if place.split("#")[0] in documents:
            gain += 1 / math.log2(documents.index(place.split("#")[0]) + 2)
        n, first, five = n + 1, first + (places[:1] == [place]), five + (place in places[:5])
    print(f"{file} {mode}: nDCG@10 {gain / n:.3f}, section first {first / n:.2f}, in five {five / n:.2f}")


{"draw": draw, "ask": ask}[sys.argv[1]](*sys.argv[2:])
