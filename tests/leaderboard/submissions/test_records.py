"""Records of maintainers, strict checks by them, the board as the last check, and the bounds of a check."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from bench.cli import main
from bench.cli.leaderboard_judges import SuiteJudges
from bench.core.errors import DataError
from bench.core.files import read_sealed, sha256_file, write_sealed
from bench.evaluation.results.format import bundle_folder
from bench.evaluation.results.read import result
from bench.testing import fields
from leaderboard.records import EXCEPTIONS, NEAR, Basis, Records, Reproduction
from leaderboard.site import verify
from leaderboard.submissions.add import check_boards, read_reproduction
from leaderboard.submissions.validate import require_recomputed, validate
from tests.leaderboard.conftest import Bundle
from tests.leaderboard.spoil import rehash
from tests.leaderboard.submissions.conftest import TINY, Look, Ran
from tests.leaderboard.submissions.test_validate import NoData


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "records")


def test_a_record_stands_for_data_that_are_not_here(look: Look, bundle: Bundle, records: Records) -> None:
    """Written where the data are; elsewhere a strict check passes by it, of this bundle and these judgements alone.

    A record next to a result proves nothing: anybody can write one into a bundle.
    """
    recomputed, blind = look(bundle), validate(bundle.folder, "it", NoData())
    NEAR.write(bundle.path, sha256_file(bundle.path), recomputed.findings, "2026")
    assert NEAR.verification(result(bundle.path)).basis is Basis.RECOMPUTED
    assert not require_recomputed(validate(bundle.folder, "it", NoData())).accepted
    assert not require_recomputed(blind, records).accepted
    records.write(bundle.path, sha256_file(bundle.path), recomputed.findings, "2026")
    (place,) = (bundle.folder.parent / "records").iterdir()
    assert records.verification(result(bundle.path)).basis is Basis.RECOMPUTED
    assert require_recomputed(blind, records).accepted
    assert require_recomputed(recomputed, records).accepted
    write_sealed(place, {**read_sealed(place), "data": {bundle.task: {"": "0" * 64}}})
    assert "a record of other judgements" in str(require_recomputed(recomputed, records).reasons[0])
    bundle.rewrite(lambda content: content.update(profile="small"))
    assert not require_recomputed(validate(bundle.folder, "it", NoData()), records).accepted


def test_exceptions_are_named(bundle: Bundle, records: Records, tmp_path: Path) -> None:
    """A result on the list passes, and stays unverified."""
    blind = validate(bundle.folder, "it", NoData())
    assert blind.candidate is not None
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / EXCEPTIONS).write_text(f"# why\n{blind.candidate.target.as_posix()}/  # no data\n")
    assert require_recomputed(blind, records).accepted
    assert records.verification(result(bundle.path)).basis is Basis.SUBMITTED


def test_the_board_is_the_last_check(
    look: Look, bundle: Bundle, ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what is there already: copies are named, and what breaks it is refused; nothing is written."""
    board = Path(shutil.copytree(ran.results, tmp_path / "board"))
    verdict = look(bundle)
    assert check_boards([verdict], board) == ([verdict], [])
    system = bundle.content["system"]
    shutil.rmtree(board / "local")
    second = Bundle(Path(shutil.copytree(bundle.folder, board / "local/beir/unsupervised/other-00000000/seed-0")))
    second.rewrite(lambda content: content["system"].update(label="other", version="0"))
    rehash(second)
    second.folder.parent.rename(board / bundle_folder(second.content).parent)
    (note,) = check_boards([verdict], board)[1]
    assert "the same numbers throughout" in note
    assert system["label"] in note

    monkeypatch.setattr(verify, "BUDGETS", ((re.compile(r"runs/.*other.*"), 10), (re.compile(r".*runs/.*"), 10)))
    (refused,), _ = check_boards([verdict], board)
    assert "the board cannot be built with it: " in str(refused.reasons[0])
    assert "expected at most 10" in str(refused.reasons[0])


def test_what_was_made_again_is_this_result(look: Look, bundle: Bundle, tmp_path: Path) -> None:
    """The report of `bench reproduce` must be of these numbers, made anew, and not differ."""
    candidate = look(bundle).candidate
    assert candidate is not None
    file = tmp_path / "again.json"

    def report(verdict: str = "OK", stages: int = 3, off: float = 0.0) -> Path:
        rows = [
            {"task": bundle.task, "subset": "", "measure": name, "theirs": value + off}
            for name, value in bundle.subset["measures"].items()
        ]
        file.write_text(json.dumps({"verdict": verdict, "values": rows, "stages_run": stages}))
        return file

    expected = Reproduction(verdict="OK", date="2026", by="A. Author")
    assert read_reproduction(report(), candidate, "A. Author", "2026") == expected
    for change in ({"verdict": "differs"}, {"stages": 0}, {"off": 0.01}):
        with pytest.raises(DataError, check=fields(where="again.json")):
            read_reproduction(report(**change), candidate, "A. Author", "2026")
    file.write_text("[]")
    with pytest.raises(DataError, check=fields(found="no report of `bench reproduce`")):
        read_reproduction(file, candidate, "A. Author", "2026")


@pytest.mark.slow
def test_the_commands_take_a_folder_of_records(
    bundle: Bundle, ran: Ran, judges: SuiteJudges, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check --record` writes there, of what was recomputed whole; bounds that are too small end in a sentence."""
    folder, board = tmp_path / "records", tmp_path / "board"
    places = ["--results", board, "--store", ran.store, "--records", folder]

    def typed(*words: Any) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(["leaderboard", "check", *map(str, (*words, *places))])
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out + captured.err

    assert typed(bundle.folder, "--record", "--task", TINY)[0] == 0
    assert Records(folder).verification(result(bundle.path)).basis is Basis.RECOMPUTED
    assert not (bundle.folder / "accepted.json").exists()
    status, output = typed(bundle.folder, "--strict")
    assert (status, "passes: " in output) == (0, True)
    assert "--reproduced and --by need each other" in typed(bundle.folder, "--record", "--by", "A. Author")[1]


@pytest.mark.parametrize("name", ["check", "add"])
def test_a_check_has_bounds(
    name: str, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A check or addition that needs more memory than it may is refused in a sentence."""
    code = tmp_path / "sitecustomize.py"
    code.write_text(
        "import sys\n"
        "if 'leaderboard' in sys.argv:\n"
        "    import leaderboard.submissions.pack as pack\n"
        "    pack.submissions = lambda paths: bytearray(9 << 30)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["leaderboard", name, str(bundle.folder), "--memory", "8", "--results", str(tmp_path / "board")])
    assert ended.value.code == 2
    assert "found a result that takes more memory or time, expected at most 8 GiB" in capsys.readouterr().err
