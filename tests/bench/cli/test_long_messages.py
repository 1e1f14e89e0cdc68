"""Failures that would fill the screen: cut in the middle, since the end says what to do."""

import json
from pathlib import Path

import pytest

from bench.cli import main


def test_a_long_message_keeps_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty faults are more than is printed; that there are more of them is said last, for machines too."""
    qrels, run = tmp_path / "qrels.tsv", tmp_path / "run.trec"
    qrels.write_text("query-id\tcorpus-id\tscore\n" + "".join(f"q{at}\td\tno-number-{'x' * 80}\n" for at in range(40)))
    run.write_text("q0 Q0 d 1 1.0 x\n")
    with pytest.raises(SystemExit):
        main(["score", "--qrels", str(qrels), "--run", str(run), "--measures", "RR", "--json"])
    printed, error = capsys.readouterr()
    message = json.loads(printed)["error"]["message"]
    assert message.endswith("… and 20 more faults like these")
    assert "bytes left out" in message
    assert len(message.encode()) < 2_000
    assert f"bench: {message}\n" in error
