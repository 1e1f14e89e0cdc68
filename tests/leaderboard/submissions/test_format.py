"""The format as a document, its versions, and strangers' JSON."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import leaderboard
from bench.core.errors import StoreError
from bench.core.files import write_sealed
from bench.data.formats.faults import RecordError
from bench.evaluation.results import SCHEMA
from bench.evaluation.results.format import Accepted, document, place, rendered
from bench.evaluation.results.read import faults, keys, read_result, result, results
from bench.testing import fields
from leaderboard.submissions.strict_json import parse
from tests.leaderboard.conftest import Bundle

COMMITTED = Path(leaderboard.__file__).parent / "format" / "result-2.schema.json"


def test_the_document_is_in_step_with_the_models() -> None:
    """What the repository holds is what the models say: `bench leaderboard schema > leaderboard/format/…` renews it."""
    assert COMMITTED.read_text(encoding="utf-8") == rendered()
    assert document()["properties"]["schema"]["const"] == SCHEMA


def test_the_document_describes_a_real_result(bundle: Bundle) -> None:
    """Its required keys are there, and every part that it refers to is defined."""
    document_text, content = document(), json.loads(bundle.path.read_text())
    assert set(document_text["required"]) <= set(content)
    assert {"schema", "seal", "system", "tasks", "files"} <= set(document_text["required"])
    referred = {part.partition('"')[0] for part in json.dumps(document_text).split('"#/$defs/')[1:]}
    assert referred <= set(document_text["$defs"])
    assert {"PerQuery", "Accepted", "Cards", "Remote"} <= set(document_text["$defs"])
    subset = document_text["$defs"]["Subset"]
    assert set(subset["required"]) <= set(bundle.subset)
    assert subset["properties"]["measures"]["additionalProperties"] == {"maximum": 1, "minimum": 0, "type": "number"}


def test_places_are_those_of_the_pipeline(bundle: Bundle, mini: Bundle) -> None:
    """The one that writes bundles and the one that reads them agree."""
    for submitted in (bundle, mini):
        expected = {place("runs", submitted.task, ""), place("per-query", submitted.task, ""), "cards.json"}
        assert set(submitted.content["files"]) == expected
    assert place("runs", "tatoeba/fra-eng", "eng-fra") == "runs/tatoeba/fra-eng/eng-fra.trec.gz"


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ("retrieval-bench/result/1", "a version before 0.2.0 made it: run its command again, or use that version"),
        ("retrieval-bench/result/3", "a newer version made it: type `pip install --upgrade retrieval-bench`"),
        ("retrieval-bench/result/x", "it is no result file of retrieval-bench"),
        (None, "it is no result file of retrieval-bench"),
        (["x" * 9999], "it is no result file of retrieval-bench"),
    ],
)
def test_versions_that_are_not_read(bundle: Bundle, schema: object, hint: str) -> None:
    """Each with what to do next; what is shown of the found one is short, and the file stays as it is."""
    write_sealed(bundle.path, {**bundle.content, "schema": schema})
    before = bundle.path.read_bytes()
    expected = {"where": str(bundle.path), "expected": "'retrieval-bench/result/2'", "hint": hint}
    for read in (read_result, result, faults, lambda path: results(path.parent), lambda path: keys(path.parent)):
        with pytest.raises(StoreError, check=fields(**expected)) as caught:
            read(bundle.path)
        assert len(caught.value.found) < 80
    assert bundle.path.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "[[[[\\"{", "b": [1, -2.5e3, null, true]}', {"a": '[[[["{', "b": [1, -2500.0, None, True]}),
        ("[" * 40 + "]" * 40, None),
        ('"' + '\\"' * 9 + '"', '"' * 9),
        (str(2**63 - 1), 2**63 - 1),
        (str(-(2**63)), -(2**63)),
        ('"' + "x" * 100_000 + '"', "x" * 100_000),
    ],
)
def test_json_that_is_read(text: str, value: object) -> None:
    """Brackets inside texts are no nesting."""
    parsed = parse(text.encode())
    assert value is None or parsed == value


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"[" * 1_000_000, "more than 40 levels"),
        (b'"' + b'\\"' * 100_000, "no JSON"),
        (b"[1, 2", "no JSON"),
        (b'{"a": {"b": 1, "b": 1}}', "the key 'b' twice"),
        (b"-Infinity", "found -Infinity, expected a finite number"),
        (b"-1e400", "found the number '-1e400'"),
        (str(2**63).encode(), "at most 64 bits"),
        (str(-(2**63) - 1).encode(), "at most 64 bits"),
        (b"9" * 5000, "at most 64 bits"),
        (b'["' + b"x" * 100_001 + b'"]', "a text of 100,001 characters"),
        (b'{"' + b"x" * 100_001 + b'": 1}', "a text of 100,001 characters"),
        (b'"\\udc00"', "half a surrogate pair"),
        (b"\xfe", "byte 0xfe, which is not UTF-8"),
        (b"", "no JSON"),
    ],
)
def test_json_that_is_refused(raw: bytes, sentence: str) -> None:
    """Whatever two readers could take for two things, or what harms one."""
    with pytest.raises(RecordError, match=sentence):
        parse(raw)


def test_what_the_board_says_of_a_record() -> None:
    """All, some, or nothing was recomputed."""
    record = {"result": "0" * 64, "version": "1", "date": "2026"}
    some = {"made/a": {"": {"R@100": "no texts here", "RR@10": "no texts here"}}}
    complete = Accepted(**record, recomputed={"made/a": {"": ["R@100"]}}, not_recomputed={})
    part = Accepted(**record, recomputed={"made/a": {"": ["P@1"]}}, not_recomputed=some)
    empty = Accepted(**record, recomputed={}, not_recomputed=some)
    assert complete.said == "recomputed from its runs and the judgements"
    assert part.said == "2 of 3 numbers could not be recomputed: no texts here"
    assert empty.said == "its numbers could not be recomputed: no texts here"


def test_many_elements_are_refused_before_memory_is_spent() -> None:
    """64 MB of empty lists, which parsed would take gigabytes: a fraction of that, and seconds of the processor."""
    code = (
        "import resource, time\n"
        "from leaderboard.submissions.strict_json import parse\n"
        "raw = b'[' + b'[],' * (21 << 20) + b'[]]'\n"
        "before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()\n"
        "try:\n    parse(raw)\n"
        "except ValueError as error:\n    print('elements' if 'commas' in str(error) else error)\n"
        "used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "print(used >> 10, time.process_time() - start)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    message, megabytes, seconds = process.stdout.split()
    assert message == "elements"
    assert int(megabytes) < 200
    assert float(seconds) < 20


def test_a_document_may_have_as_many_parts_as_the_limit_says() -> None:
    """Texts, commas and brackets are counted, outside texts alone; one more is refused."""
    raw = b'["a, [b]", 1, 2]'  # two brackets, a text, two commas
    assert parse(raw, most=5) == ["a, [b]", 1, 2]
    with pytest.raises(ValueError, match="more than 4 texts, commas and brackets"):
        parse(raw, most=4)


def test_the_key_that_is_there_twice_is_named() -> None:
    """Not one of the others."""
    with pytest.raises(ValueError, match="the key 'twice' twice in one object"):
        parse(b'{"first": 1, "twice": 2, "between": 3, "twice": 4, "last": 5}')
