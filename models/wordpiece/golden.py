#!/usr/bin/env python3
"""Writes testdata/golden.jsonl: texts that tokenizers disagree about, with the ids
of the Python library `tokenizers` for the shipped model's tokenizer.
Made with tokenizers 0.23.3."""
import json
import random

from tokenizers import Tokenizer

CASES = [
    "", " ", "\t\r\n", "Hello, World!", "don't stop", "snake_case camelCase kebab-case",
    "caf\u00e9 cafe\u0301 CAF\u00c9", "na\u00efve r\u00e9sum\u00e9 \u00c5ngstr\u00f6m", "Stra\u00dfe \u1e9e \u0130stanbul \u0131",
    "\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u039f\u0394\u039f\u03a3", "\u0416\u0438\u0437\u043d\u044c \u0439 \u0419 \u0451",
    "\u4e2d\u6587\u5206\u8bcd mixed\u4e2d\u6587text", "\u65e5\u672c\u8a9e \u3072\u3089\u304c\u306a \u30ab\u30bf\u30ab\u30ca \u304c \u30ac \uff76\uff9e",
    "\ud55c\uad6d\uc5b4 \uac00 \uac01", "\uf900 \U0002f800 \u3400 \U00020000 \U0002b740", "\ufb01\ufb02 \uff21\uff22\uff23 \u2460 \u00bd \u00b2",
    "\U0001f600 ok\U0001f680go \U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f \U0001f1e9\U0001f1ea", "\u2014\u2013\u2026\u201c\u201d\u2018\u2019\u00ab\u00bb\u00a1\u00bf",
    "a\u00adb soft\u00adhyphen", "a\u00a0b\u2003c\u3000d\u1680e\u2028f\u2029g\u202fh", "zero\u200bwidth\u200c\u200d\u2060\ufeffjoiner", "a\u0085b\u000bc\u000cd\u0000e\u007ff\u001fg",
    "\ufffd a\ufffdb", "\ue000 a\uf8ffb", "\u0378 a\u0378b", "e\u0301\u0302\u0303 \u0301 \u0301\u0302x", "\u0928\u093f\u0939\u093f \u0939\u093f\u0928\u094d\u0926\u0940",
    "\u0627\u0644\u0639\u064e\u0631\u064e\u0628\u0650\u064a\u0651\u0629", "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd", "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22", "Vi\u1ec7t \u0110\u1eb7ng",
    "\u2260 \u226e \u2209 \u037e \u0387 \u1fef \u212a \u212b \u2126", "$+<=>^`|~ \u20ac\u00a3\u00a5 \u00a9\u00ae\u2122 \u00b0 \u00d7\u00f7",
    "[CLS] [SEP] [MASK] [PAD] [UNK]", "a[MASK]b [mask] [MAS K] [[MASK]] [CLS", "[unused1] ##ing #hash ##",
    "a" * 99, "a" * 100, "a" * 101, "\u00e9" * 100, "\u00e9" * 101, "x" + "\u0301" * 200, "\u4e2d" * 101, "\uac01" * 33, "\uac01" * 34, "1" * 300,
    "antidisestablishmentarianism", "supercalifragilisticexpialidocious", "kubernetes kubectl apiserver", "\u2603\u2603 x\u2603y",
    "http://example.com/a?b=c&d=%20e#f", "func (s *Server) Serve(l net.Listener) error {", "v1.26.8-rc.1+build_7", "3.14159e-10 1,000,000", "C:\\Users\\me\\file.txt", "<div class=\"a\">&nbsp;</div>",
    "\U0001d400\U0001d41a \U0001d7d8", "\u01c4\u01c5\u01c6 \u1f80 \u1fb3 \u0345", "\u1e0b\u0323 \u0b4b \u0dde \u09cb", "\u061d \u2e43 \u166d \u1734 \u111c9 \U00011938",
    "\U0001d15f \U0001d165\U0001d16d", "trailing ", " leading", "many     spaces", "line\nbreak\r\nbreak", "ALLCAPS Title MiXeD",
    " ".join(["word"] * 300), "word" * 30, "unaffable" * 11, "!" * 300,
]


def random_text(rng):
    pools = [(0x20, 0x7f), (0x20, 0x7f), (0x61, 0x7b), (0x61, 0x7b), (0, 0x250), (0x300, 0x600), (0x900, 0x1200), (0x1e00, 0x2100), (0x2000, 0x3100), (0xac00, 0xd7a4), (0xf900, 0x10000), (0x1d100, 0x1d800), (0x1f300, 0x1f700)]
    out = []
    for _ in range(rng.randint(1, 40)):
        lo, hi = rng.choice(pools)
        out.append(chr(rng.randrange(lo, hi)))
    return "".join(out)


tokenizer = Tokenizer.from_file("../minilm/tokenizer.json")
tokenizer.no_padding()
tokenizer.no_truncation()
rng = random.Random(1)
texts = CASES + [random_text(rng) for _ in range(300)]

with open("testdata/golden.jsonl", "w") as f:
    for text in texts:
        f.write(json.dumps({"text": text, "ids": tokenizer.encode(text).ids}) + "\n")
