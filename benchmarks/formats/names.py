"""Draws names that universal-ctags finds in one file of a folder, up to 40 of each language.

usage: names.py FOLDER SEED    (the folder code of fetch.sh)

Prints a name, a tab and its file, a line each, as `cairn bench self --queries` reads
them. The names of one seed are not among those of a smaller one.
"""
import collections
import json
import random
import subprocess
import sys

folder, seed = sys.argv[1], int(sys.argv[2])
tags = subprocess.run(["ctags", "-R", "--output-format=json", "-f", "-", "."],
                      cwd=folder, capture_output=True, text=True, check=True).stdout
files = collections.defaultdict(set)
for line in tags.splitlines():
    tag = json.loads(line)
    name, path = tag["name"], tag["path"].removeprefix("./")
    made_up = name.startswith(("__anon", "Anonymous"))
    if not path.endswith(".md") and len(name) > 2 and name.replace("_", "").isalnum() and not made_up:
        files[name].add(path)
languages = collections.defaultdict(list)
for name in sorted(files):
    if len(files[name]) == 1:
        languages[min(files[name]).split("/")[0]].append(name)
draw = random.Random(20261122)
for language in sorted(languages):
    names = languages[language]
    draw.shuffle(names)
    for name in names[40 * seed:40 * (seed + 1)]:
        print(name, min(files[name]), sep="\t")
