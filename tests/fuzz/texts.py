"""Training pairs (DPR, SQuAD, JSON lines, tables) and documents (JSON lines, text, wikis, crawls), packed or not."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.data import pairs as readers
from bench.data.corpora.documents import documents
from tests.fuzz.harness import Case, Draw, Outcome

PACK: Mapping[str, Callable[[bytes], bytes]] = {
    "": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress,
}  # fmt: skip
TEXT = "The quick brown fox jumps. It [[runs|ran]] far {{cite|x}} <ref>a</ref> [http://a.b c] '''away'''. "
_DPR = {"question": "who?", "answers": ["a"], "positive_ctxs": [{"title": "t", "text": "a b"}], "negative_ctxs": []}
_ANSWER = {"text": "brown", "answer_start": 10}
_SQUAD = {"paragraphs": [{"context": TEXT, "qas": [{"id": "1", "question": "which?", "answers": [_ANSWER]}]}]}
_PAGE = (
    f"<page><title>A</title><ns>0</ns><id>1</id><revision><text>{TEXT.replace('<', '&lt;')}</text></revision></page>"
)
_WET = "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://a\r\nContent-Length: {}\r\n\r\n{}\r\n\r\n"

PAIRS: Mapping[str, tuple[Any, int]] = {
    "pairs.jsonl": ([{"query": f"q {at}", "positive": "a b", "negative": ["c"]} for at in range(4)], 4),
    "pairs.tsv": ("query\tpositive\nasked\ttold\tother\nmore\tsaid\n", 2),
    "dpr.json": ([_DPR, _DPR], 2),
    "squad.json": ({"version": "1", "data": [_SQUAD]}, 1),
}
DOCUMENTS: Mapping[str, tuple[Any, int]] = {
    "en.jsonl": ([{"id": str(at), "lang": "en", "title": "t", "text": TEXT} for at in range(4)], 4),
    "en.txt": (f"{TEXT}\n\n{TEXT}\n{TEXT}\n", 2),
    "enwiki-1.xml": (f"<mediawiki>\n{_PAGE}\n</mediawiki>".replace("><", ">\n<"), 1),
    "en-wiki.txt": (f'<doc id="1" url="u" title="A">\nA\n\n{TEXT}\n</doc>\n', 1),
    "en.wet": (_WET.format(len(TEXT.encode()), TEXT) * 2, 2),
}


def read(path: Path, pairs: bool) -> int:
    return len(list(readers.load_pairs(str(path), "en").read() if pairs else documents(path, "en").read()))


def case(draw: Draw, folder: Path) -> Case:
    """Draw a file; leave it whole, or change its records, its bytes, or those of the compressed file."""
    pairs = draw.random() < 0.5
    name, (content, count) = draw.choice([*(PAIRS if pairs else DOCUMENTS).items()])
    damage = draw.choice(("sound", "records", "bytes", "packed", "long"))
    if isinstance(content, str) and damage == "records":
        damage = "bytes"
    if damage == "records":
        content = draw.altered(content)
    elif damage == "long":  # many times what a parser may be slow at
        piece = draw.choice(("[http://", "[[", "{{", "<ref>", "{|", "'''", "[" * 9, '{"a":', "<page>", "&lt;!--"))
        content = json.loads(json.dumps(content).replace("fox", json.dumps(piece * 1_500)[1:-1]))
    if not isinstance(content, str):
        rows = content if isinstance(content, list) and name.endswith("l") else [content]
        content = "\n".join(map(json.dumps, rows))
    data = content.encode("utf-8", "surrogatepass")
    data = draw.damaged(data) if damage == "bytes" else data
    ending = draw.choice([*PACK])
    packed = PACK[ending](data)
    path = folder / f"{name}{ending}"
    path.write_bytes(draw.damaged(packed) if damage == "packed" else packed)

    def judge(outcome: Outcome) -> str:
        result = outcome.value if outcome.code == 0 else outcome.stderr
        return (
            f"found {result} in a sound {path.name}, expected {count}" if damage == "sound" and result != count else ""
        )

    return Case(lambda: read(path, pairs), judge)
