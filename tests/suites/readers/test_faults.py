"""What readers say of faulty files: each fault with its line, all of a file at once.

Cases are in `tests/golden/faults.json`: readers, the lines of a file, what is said. In the lines `LONG` means 140,000
letters, `DEEP` 2,000 brackets and `DEEPER` 100,000. `BENCH_RECORD=1 pytest` writes what is said anew.
"""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from suites import mrtydi
from suites.readers import askubuntu, dpr, mewsli_x, mkqa, xor, xquad
from tests.conftest import ReadErrors, WriteFile

GOLDEN = Path(__file__).parents[2] / "golden" / "faults.json"
CASES: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
FILLED = {"LONG": "x" * 140_000, "DEEPER": "[" * 100_000, "DEEP": "[" * 2_000}
READERS: dict[str, Callable[[Path], Iterable[Any]]] = {
    "anserini": lambda path: mrtydi.passages(path).read(),
    "askubuntu candidates": lambda path: askubuntu.candidates(path).read(),
    "askubuntu judgements": lambda path: askubuntu.judgements(path).read(),
    "askubuntu texts": lambda path: askubuntu.texts(path).read(),
    "dpr passages": lambda path: dpr.passages(path).read(),
    "dpr questions": lambda path: dpr.questions(path).read(),
    "dpr answers": lambda path: dpr.answers(path).read(),
    "mewsli-x entities": lambda path: mewsli_x.entities(path).read(),
    "mewsli-x mentions": lambda path: mewsli_x.mentions(path, "de").read(),
    "mewsli-x meant": lambda path: mewsli_x.gold(path, "de").read(),
    "mewsli-x pairs": lambda path: mewsli_x.pairs(path).read(),
    "mkqa questions": lambda path: mkqa.questions_source(path, "no").read(),
    "mkqa answers": lambda path: mkqa.answers_source(path).read(),
    "xor questions": lambda path: xor.questions(path, xor.Part("ar", "dev", 5)).read(),
    "xquad": xquad.paragraphs,
}


@pytest.mark.parametrize(
    ("reader", "at"), [(reader, at) for at, case in enumerate(CASES) for reader in case["readers"]]
)
def test_faults_are_told(reader: str, at: int, write: WriteFile, errors: ReadErrors) -> None:
    """Whatever part of a file is asked for, and of lines that are not wanted too."""
    text = "\n".join(CASES[at]["text"])
    for name, content in FILLED.items():
        text = text.replace(name, content)
    path = write("given", text)
    sentences = [sentence.replace(str(path), "FILE") for sentence in errors(READERS[reader](path))]
    if os.environ.get("BENCH_RECORD"):
        CASES[at]["faults"] = sentences
        GOLDEN.write_text(json.dumps(CASES, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert sentences == CASES[at]["faults"]
