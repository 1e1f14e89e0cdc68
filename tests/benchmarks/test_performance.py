"""The page on speed is that of its records, and says what they say."""

import json
import re
from pathlib import Path

import pytest

from experiments.speed import __main__ as speed
from experiments.speed.__main__ import PAGE, RECORD, growth_answer, missed, page, reached, rows
from experiments.speed.measure import Measured


def test_the_page_is_that_of_its_records() -> None:
    """Nobody has edited it; the versions of libraries are those of the machine that measured."""
    text, records, all_rows = PAGE.read_text(encoding="utf-8"), json.loads(RECORD.read_bytes()), rows()
    (versions,) = (line.removesuffix(".") for line in text.splitlines() if line.startswith("Python 3"))
    assert text == page(records, all_rows, versions)
    for line in (line for line in text.splitlines() if "| no |" in line):
        pairs = re.findall(r"([\d.]+) \(≥ ([\d.]+)\)", line)
        assert any(float(ratio) < float(target) for ratio, target in pairs), "none is rounded up to a target it misses"
    tested = [(row, records[name]) for name, row in all_rows.items()]
    tested += [(row, there) for row, record in tested for there in record.get("beside", {}).values()]
    assert text.count("| no |") == sum(bool(missed(row, record)) for row, record in tested)


def test_growth_is_between_the_smallest_and_the_largest_size() -> None:
    """Ten times the tokens, half the time for each, and three times the memory; of passages three sizes count two."""
    sizes = {"bm25": (10_000, 30_000, 100_000), "encode": (10_000, 30_000), "prepare": (12_000, 120_000)}
    records = {
        f"growth: {work} {size:,}": {"units": size, "microseconds": 2.0 / (at + 1), "mebibytes": 10 + 20 * at}
        for work, each in sizes.items()
        for at, size in enumerate(each)
    }
    bm25, _, prepare = growth_answer(records).splitlines()
    assert bm25 == "- bm25: 10 times the size takes 0.33 times the CPU time for each passage, and 5 times the memory."
    assert (
        prepare == "- prepare: 10 times the size takes 0.5 times the CPU time for each token, and 3 times the memory."
    )


@pytest.mark.parametrize(("processor", "expected"), [("A", 1.2), ("B", 0.7), ("C", 0.7)])
def test_a_processor_is_held_to_what_it_reached(
    processor: str, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of which nothing is recorded is held to the lowest ratio."""
    beside = {"B": {"ratios": {"faiss": 0.7}, "processor": "B"}}
    record = {"ratios": {"faiss": 1.2}, "processor": "A", "beside": beside}
    monkeypatch.setattr(speed, "this_processor", lambda: processor)
    assert reached(record, "faiss") == expected


def test_a_second_processor_is_recorded_once_beside_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own ratio is printed; a repeated command measures nothing; `--again` keeps what the other one reached."""
    record, measured = tmp_path / "performance.json", []
    name = "the same by cosine"
    first = {"seconds": {"ours": 1.0, "faiss": 1.2}, "ratios": {"faiss": 1.2}, "least": {"faiss": 1.2}}
    record.write_text(json.dumps({name: {**first, "processor": "A", "load": 1.0}}))

    def measure(*_: object) -> Measured:
        measured.append(1)
        return Measured({"ours": 2.0, "faiss": 1.4}, {"faiss": 0.7}, {"faiss": 0.7})

    for attribute, value in {"RECORD": record, "measure": measure, "contradictions": lambda *_: []}.items():
        monkeypatch.setattr(speed, attribute, value)
    for processor, option in (("B", "--beside"), ("B", "--beside"), ("A", "--again")):
        monkeypatch.setattr(speed, "this_processor", lambda processor=processor: processor)
        monkeypatch.setattr("sys.argv", ["speed", option, name])
        speed.main()
        assert "faiss 0.7 " in capsys.readouterr().out or processor == "A"
    assert len(measured) == 2
    after = json.loads(record.read_text())[name]
    assert (after["processor"], after["ratios"], after["beside"]["B"]["ratios"]) == (
        "A",
        {"faiss": 0.7},
        {"faiss": 0.7},
    )
