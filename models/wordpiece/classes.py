#!/usr/bin/env python3
"""Writes classes.txt: what the BERT normaliser and pre-tokenizer of the Python
library `tokenizers` do to every Unicode code point. Run once; the table changes
only when that library changes its Unicode data, which would change the ids of
every published BERT model. Made with tokenizers 0.23.3."""
import tokenizers
from tokenizers import normalizers, pre_tokenizers

split = pre_tokenizers.BertPreTokenizer()


def norm(uncased):
    return normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True,
                                      strip_accents=uncased, lowercase=uncased)


def outcome(normalizer, cp):
    """What becomes of cp between two letters: (class, text)."""
    pieces = [p for p, _ in split.pre_tokenize_str(normalizer.normalize_str("a" + chr(cp) + "b"))]
    if pieces == ["ab"]:
        return "drop", ""
    if pieces == ["a", "b"]:
        return "space", ""
    if len(pieces) == 1:
        return "word", pieces[0][1:-1]
    assert len(pieces) == 3 and pieces[0] == "a" and pieces[2] == "b", (hex(cp), pieces)
    return "alone", pieces[1]


def ranges(cps):
    out = []
    for cp in sorted(cps):
        if out and out[-1][1] == cp - 1:
            out[-1][1] = cp
        else:
            out.append([cp, cp])
    return out


points = [cp for cp in range(0x110000) if not 0xD800 <= cp < 0xE000]
cased = {cp: outcome(norm(False), cp) for cp in points}
uncased = {cp: outcome(norm(True), cp) for cp in points}
lines = [f"# Written by classes.py with tokenizers {tokenizers.__version__}; do not edit. Code points in hexadecimal.",
         "# drop, space, alone FIRST LAST: removed, white space, a word of its own.",
         "# mark FIRST LAST: removed too, but only by an uncased model.",
         "# fold FROM TO...: replaced, only by an uncased model. Hangul is not listed: it decomposes by rule."]
for kind in ("drop", "space", "alone"):
    for first, last in ranges(cp for cp in points if cased[cp][0] == kind):
        lines.append(f"{kind} {first:x} {last:x}")
for first, last in ranges(cp for cp in points if uncased[cp][0] == "drop" != cased[cp][0]):
    lines.append(f"mark {first:x} {last:x}")
for cp in points:
    kind, text = uncased[cp]
    if kind not in ("word", "alone") or text == chr(cp):
        continue
    assert (kind == "alone") == (cased[cp][0] == "alone" or cased[ord(text[0])][0] == "alone"), hex(cp)
    assert kind == "word" or len(text) == 1, hex(cp)
    if not 0xAC00 <= cp <= 0xD7A3:
        lines.append(f"fold {cp:x} " + " ".join(f"{ord(c):x}" for c in text))
for cp in points:
    if cased[cp][0] != "word":
        assert uncased[cp][0] == cased[cp][0], hex(cp)
with open("classes.txt", "w") as f:
    f.write("\n".join(lines) + "\n")
