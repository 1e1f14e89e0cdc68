"""Taking results in: whole or not at all, each once, at its place, with a record of what was found."""

import gzip
import hashlib
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cli.leaderboard_judges import SuiteJudges
from bench.core.errors import DataError, DataFaultsError, StoreError, UsageError
from bench.core.files import read_sealed, sha256_file, write_sealed
from bench.evaluation.results import results as read_results
from bench.testing import fields
from leaderboard.submissions import add as adding
from leaderboard.submissions.add import Added, add, check_place, existing
from leaderboard.submissions.bundle import Candidate, ValidationErrors, read_candidate
from leaderboard.submissions.pack import pack, submissions
from leaderboard.submissions.validate import validate
from tests.conftest import tree
from tests.leaderboard.conftest import Bundle, Publisher
from tests.leaderboard.submissions.conftest import Ran

Take = Callable[..., list[Added]]
TIME = "2026-11-21T12:00:00+00:00"


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """The folder of results that others are added to."""
    return tmp_path / "board"


@pytest.fixture
def take(judges: SuiteJudges, board: Path) -> Take:
    """Look at what is handed in and add it, as the command does."""

    def call(*paths: Path) -> list[Added]:
        with submissions(paths) as submitted:
            return add(
                [check_place(validate(folder, title, judges), board) for folder, title in submitted.items()],
                board,
                TIME,
            )

    return call


def test_a_result_is_copied_with_a_record(take: Take, bundle: Bundle, board: Path, ran: Ran) -> None:
    """To the place where `bench run` puts it, byte for byte; readers find it and the record."""
    (added,) = take(bundle.folder)
    assert added.state == "added"
    assert added.path.relative_to(board) == (ran.local / "result.json").relative_to(ran.results)
    copied = tree(added.path.parent)
    record = copied.pop("accepted.json")
    assert copied == tree(bundle.folder)
    (result,) = read_results(board)
    assert result.accepted is not None
    assert (result.accepted.result, result.accepted.date) == (sha256_file(bundle.path), TIME)
    assert result.accepted.said == "recomputed from its runs and the judgements"
    assert read_sealed(added.path.parent / "accepted.json")["not_recomputed"] == {}
    assert b"/tmp" not in record  # no folder of this machine


def test_the_same_twice_and_another_of_its_kind(take: Take, bundle: Bundle, board: Path) -> None:
    """The same is already there; another one is refused, whatever its label, until the first is taken away."""
    (first,) = take(bundle.folder)
    before = tree(board)
    (second,) = take(bundle.path)
    assert (second.state, second.path) == ("already there", first.path)
    bundle.rewrite(lambda content: content["system"].update(label="bm25, but better"))
    with pytest.raises(DataError, check=fields(found="another result of the same system")):
        take(bundle.folder)
    assert tree(board) == before, "nothing is written, not even the record"
    shutil.rmtree(first.path.parent)
    assert take(bundle.folder)[0].path.parts[-3].startswith("bm25-but-better-")


def test_two_of_one_kind_handed_in_together(take: Take, bundle: Bundle, board: Path, tmp_path: Path) -> None:
    """The board cannot know which is meant."""
    second = Bundle(Path(shutil.copytree(bundle.folder, tmp_path / "other")))
    second.rewrite(lambda content: content.update(profile="small"))
    with pytest.raises(DataError, check=fields(found="another result of the same system")):
        take(bundle.folder, second.folder)
    assert not board.exists()


def test_one_bad_result_keeps_all_out(take: Take, bundle: Bundle, mini: Bundle, board: Path) -> None:
    """Nothing is written, and every reason of every file is told."""
    bundle.edit_values(lambda table: table["measures"]["nDCG@10"].__setitem__(0, 0.0))
    (bundle.folder / "stray").write_text("x")
    with pytest.raises(DataFaultsError) as caught:
        take(mini.folder, bundle.folder)
    assert caught.value.exit_code == 2
    assert "stray: found a file that result.json does not name" in str(caught.value)
    assert "found a mean 'nDCG@10'" in str(caught.value)
    assert not board.exists()


def test_a_full_disk_leaves_nothing(take: Take, bundle: Bundle, board: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result file comes last, and what was copied before it goes; leavings of a killed addition are replaced.

    A label may be any text; its folder is named by letters that mean nothing.
    """
    bundle.rewrite(lambda content: content["system"].update(label="../../<img src=x onerror=alert(1)>"))

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(adding, "write_bytes", full)
    with pytest.raises(StoreError, match="the disk is full"):
        take(bundle.folder)
    assert read_results(board) == []
    monkeypatch.undo()
    (added,) = take(bundle.folder)
    assert added.state == "added"
    system = added.path.parent.parent
    assert system.parent == board / "local" / "beir" / "unsupervised"
    assert "<" not in system.name
    added.path.rename(added.path.with_name("left-over"))
    (repeated,) = take(bundle.folder)
    assert (repeated.state, repeated.path) == ("added", added.path)
    assert "left-over" not in tree(repeated.path.parent)


@pytest.mark.parametrize("ending", ["zip", "tar.gz"])
def test_archives(take: Take, ran: Ran, tmp_path: Path, ending: str) -> None:
    """Of a whole results folder: both results, each at its place."""
    archive = tmp_path / f"theirs.{ending}"
    if ending == "zip":
        with zipfile.ZipFile(archive, "w") as packed:
            for path in sorted(ran.results.rglob("*.*")):
                packed.write(path, path.relative_to(ran.results.parent))
    else:
        with tarfile.open(archive, "w:gz") as packed_tar:
            packed_tar.add(ran.results, "results")
    added = take(archive)
    assert [addition.state for addition in added] == ["added", "added"]
    assert added[0].title.startswith(f"{archive}/results/local/beir")


def test_what_is_nothing(take: Take, bundle: Bundle, tmp_path: Path) -> None:
    """No file, a link, a folder without results, a file that is no archive; any file of a bundle stands for it."""
    with submissions([bundle.folder / "cards.json", bundle.path, bundle.folder]) as submitted:
        assert [folder.resolve() for folder in submitted] == [bundle.folder.resolve()]
    with pytest.raises(UsageError, check=fields(where="nowhere", found="nothing")):
        take(tmp_path / "nowhere")
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(UsageError, check=fields(found="a link")):
        take(tmp_path / "link")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, check=fields(found="no result.json")):
        take(tmp_path / "empty")
    (tmp_path / "notes.txt").write_text("no archive")
    with pytest.raises(DataError, match="damaged archive"):
        take(tmp_path / "notes.txt")


def test_a_result_at_another_place(ran: Ran, judges: SuiteJudges, board: Path) -> None:
    """Inside a results folder the path must be the one that the content decides, or sites would show it falsely."""
    moved = board / "official" / "beir" / "unsupervised" / "bm25-00000000" / "seed-0"
    shutil.copytree(ran.local, moved)
    verdict = check_place(validate(moved, "it", judges), board)
    assert "found a result at another place than its own, expected local/beir/unsupervised/bm25-" in str(
        verdict.reasons[0]
    )


def test_a_record_of_ones_own_making(take: Take, bundle: Bundle, judges: SuiteJudges, board: Path) -> None:
    """It may claim no more than is found now, of this very file; `add` never copies it."""
    (added,) = take(bundle.folder)
    record = added.path.parent / "accepted.json"
    assert check_place(validate(added.path.parent, "it", judges), board).accepted
    claim = read_sealed(record)
    claim["recomputed"][bundle.task][""].append("MAP@99")
    write_sealed(record, claim)
    verdict = check_place(validate(added.path.parent, "it", judges), board)
    assert "found a claim that 'MAP@99' of beir/tiny-beir was recomputed" in str(verdict.reasons[0])
    assert check_place(validate(added.path.parent, "it", judges), board, trusted=True).accepted
    write_sealed(record, {**claim, "result": "0" * 64})
    verdict = check_place(validate(added.path.parent, "it", judges), board)
    assert "a record of another result file" in str(verdict.reasons[0])
    assert read_results(board)[0].accepted is None
    record.write_text("{}")
    assert "cannot be trusted" in str(check_place(validate(added.path.parent, "it", judges), board).reasons[0])
    with pytest.raises(StoreError, match=r"accepted\.json cannot be trusted"):
        _ = read_results(board)[0].accepted


def test_a_large_run_is_packed_by_its_address(take: Take, bundle: Bundle, tmp_path: Path) -> None:
    """The copy names it, passes, and the record says what that costs; the result's own folder stays as it is."""
    run = (bundle.folder / bundle.run_name).read_bytes() + 60_000 * gzip.compress(b"", mtime=0)  # the same, but larger
    bundle.replace_file(bundle.run_name, run)
    before = tree(bundle.folder)
    with pytest.raises(
        DataError, match=r"found 1,200,\d\d\d bytes, expected at most 1,048,576; put the run on the web"
    ):
        take(bundle.folder)
    with pytest.raises(UsageError, check=fields(where="--url", found="''")):
        pack(bundle.folder, tmp_path / "packed")
    uploads = pack(bundle.folder, tmp_path / "packed", "https://x.org/runs-of-mine/")
    assert uploads == {bundle.run_name: f"https://x.org/runs-of-mine/{bundle.run_name}"}
    assert tree(bundle.folder) == before
    (added,) = take(tmp_path / "packed" / "result.json")
    assert not (added.path.parent / bundle.run_name).exists()
    (result,) = read_results(added.path.parent)
    remote = result.content.remote[bundle.run_name]
    assert (remote.sha256, remote.bytes) == (hashlib.sha256(run).hexdigest(), len(run))
    assert result.accepted is not None
    assert result.accepted.said.startswith(
        "its numbers could not be recomputed: the run is not in the bundle (1.2 MB at https://x.org/runs-of-mine/runs/"
    )
    with pytest.raises(UsageError, check=fields(found="an existing folder")):
        pack(bundle.folder, tmp_path / "packed", "https://x.org/")


def test_an_address_is_percent_encoded(publish_result: Publisher, tmp_path: Path) -> None:
    """Of a run whose task has a name in another script; the format takes it, and its path is as it was."""
    bundle = Bundle(publish_result("bm25", {"beir/日本": {"": [0.5]}}, suite="beir", data="local").parent)
    bundle.replace_file("runs/beir/日本.trec.gz", bytes(1 << 21))
    uploads = pack(bundle.folder, tmp_path / "packed", "https://x.org/")
    assert uploads == {"runs/beir/日本.trec.gz": "https://x.org/runs/beir/%E6%97%A5%E6%9C%AC.trec.gz"}
    (result,) = read_results(tmp_path / "packed")
    assert {name: remote.url for name, remote in result.content.remote.items()} == uploads


def test_only_runs_may_lie_elsewhere(bundle: Bundle, tmp_path: Path) -> None:
    """What a page needs must be in the bundle; a damaged one is not packed."""
    bundle.replace_file("cards.json", b" " * (1 << 21))
    with pytest.raises(
        UsageError, check=fields(where="cards.json", found="2,097,152 bytes", expected="at most 1,048,576")
    ):
        pack(bundle.folder, tmp_path / "packed", "https://x.org/")
    (bundle.folder / "cards.json").write_text("{}")
    with pytest.raises(StoreError, check=fields(where="cards.json", found="sha256")):
        pack(bundle.folder, tmp_path / "packed")
    with pytest.raises(UsageError, check=fields(found="no result.json")):
        pack(tmp_path, tmp_path / "packed")


def candidate_of(bundle: Bundle) -> Candidate:
    """The bundle as it is handed in."""
    candidate = read_candidate(bundle.folder, ValidationErrors("it"))
    assert candidate is not None
    return candidate


def test_a_damaged_result_of_its_kind_keeps_a_result_out(take: Take, bundle: Bundle, board: Path) -> None:
    """It is taken for the same system, and shown where it lies, rather than hidden behind a second one."""
    (first,) = take(bundle.folder)
    first.path.write_text("no JSON")
    assert existing(candidate_of(bundle), board) == [first.path]
    first.path.rename(first.path.with_name("other.json"))
    assert existing(candidate_of(bundle), board) == []


def test_another_system_at_the_place_of_a_result_is_found(take: Take, bundle: Bundle, board: Path) -> None:
    """Eight digits of a hash may be those of another system."""
    (first,) = take(bundle.folder)
    content = json.loads(first.path.read_text(encoding="utf-8"))
    content["system"]["hash"] = content["system"]["hash"][:8] + "0" * 56
    write_sealed(first.path, {key: value for key, value in content.items() if key != "seal"})
    assert existing(candidate_of(bundle), board) == [first.path]
