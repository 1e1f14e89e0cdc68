"""How far a row was checked: what was not verified leads nothing, and says so wherever it shows."""

import csv
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bench.core.errors import StoreError
from bench.core.files import sha256_file, write_sealed
from bench.evaluation.results import results as read_results
from bench.evaluation.results.read import result
from bench.types import GridCell, Preset
from leaderboard.build import files
from leaderboard.pages.ablations import grids
from leaderboard.pages.index import new_rows
from leaderboard.records import ONLY_RECOMPUTED, Basis, Findings, Records, Reproduction
from leaderboard.site import heat
from leaderboard.site.boards import Board, boards
from leaderboard.site.export import export
from leaderboard.site.site import Catalogue
from tests.leaderboard.conftest import Publisher, method_of, site_of, values

STEM = "suites/made/unsupervised"
FALSE = "liar (d0d16a2f, unverified)"
TASKS = {"made/a": {"": [1.0] * 40}}
Accept = Callable[..., None]


@pytest.fixture
def accept() -> Accept:
    """Write the record of a result that was taken in, next to it; `why` is why it could not be recomputed."""

    def call(path: Path, why: str = "") -> None:
        content = result(path).content
        numbers = {
            task: {subset: list(subset_content.measures) for subset, subset_content in subsets.items()}
            for task, subsets in content.tasks.items()
        }
        reasons = {
            task: {subset: dict.fromkeys(names, why) for subset, names in subsets.items()}
            for task, subsets in numbers.items()
        }
        record = {"schema": "retrieval-bench/accepted/2", "result": sha256_file(path), "version": "1", "date": "2026"}
        outcome = {"recomputed": {} if why else numbers, "not_recomputed": reasons if why else {}}
        write_sealed(path.parent / "accepted.json", {**record, **outcome})

    return call


@pytest.fixture
def lying(publish_result: Publisher, results: Path, accept: Accept) -> Board:
    """Two systems that were run here, and a perfect one that nobody could recompute, with a task that nobody has."""
    publish_result("good", {"made/a": {"": values(0.6, 1)}})
    publish_result("poor", {"made/a": {"": values(0.2, 1)}})
    system = {"method": "liar"}
    path = publish_result(
        "liar", {**TASKS, "made/z": {"": [1.0] * 3}}, system={**system, "budget": 1}, subset={"release": "v9"}
    )
    accept(path, "it is of release 'v9' of the data")
    (board,) = boards(read_results(results))
    return board


def test_an_unverified_row_has_no_rank_and_changes_no_other(lying: Board, results: Path) -> None:
    """The board is the one without it: tasks, headline, ranks, tests, colours."""
    assert [row.name for row in lying.rows] == ["good", "poor"]
    (row,) = lying.unranked
    assert (row.name, row.verification.basis) == (FALSE, Basis.SUBMITTED)
    assert (row.ranks, row.tied, row.low) == (None, False, None)
    honest = [result for result in read_results(results) if result.content.system.label != "liar"]
    (board,) = boards(honest)
    assert (board.rows, board.columns, board.headline) == (lying.rows, lying.columns, lying.headline)
    assert FALSE not in f"{lying.tests.ranks.members} {lying.tests.cells.members}"


def test_it_is_marked_wherever_it_shows(lying: Board, results: Path) -> None:
    """Every page that names it, CSV, JSON, print, and each kind of export; no ranks, costs, grids or papers."""
    site = site_of(results)
    site_files = files(site)
    for name, content in site_files.items():
        shown = content.decode()
        if "liar" in shown and name.startswith((STEM, "index", "compare", "cost", "methods/liar")):
            assert FALSE in shown, name
    assert not [name for name in site_files if name.startswith("compare/") and b"liar" in site_files[name]]
    rows = {row["system"]: row for row in csv.DictReader(site_files[f"{STEM}.csv"].decode().splitlines())}
    assert (rows[FALSE]["state"], rows[FALSE]["ranks"]) == ("unverified", "")
    assert (rows["good"]["state"], rows["good"]["checked"]) == ("verified", "run here")
    states = {row["system"]: row["state"] for row in json.loads(site_files[f"{STEM}.json"])["rows"]}
    assert states[FALSE] == "unverified"
    assert "| not verified |" in site_files[f"{STEM}.md"].decode()
    tables = [text for name, text in site_files.items() if re.fullmatch(r"data/q/.*-liar-.*\.csv", name)]
    assert [text.startswith(b"# unverified: ") for text in tables] == [True, True]
    page = next(text.decode() for name, text in site_files.items() if name.startswith("runs/made-unsupervised-liar"))
    assert f"{FALSE} is not ranked, because some of its numbers could not be recomputed." in page
    assert "Seed 0: unverified: its numbers could not be recomputed: it is of release" in page.replace("&#39;", "'")
    assert new_rows(site, site.boards) == []
    for kind in ("csv", "markdown", "mteb", "model-index"):
        exported = export("all", kind, results, system="liar (unverified)" if kind == "model-index" else None)
        text = b"".join(exported.values()).decode()
        assert "liar (unverified)" in text or "liar-unverified" in "".join(exported), kind
        assert '"liar"' not in text


def test_its_cells_are_in_no_grid(publish_result: Publisher, results: Path, accept: Accept) -> None:
    """An ablation compares verified cells with the paper's."""
    preset = Preset(
        {}, "x", "y", (GridCell("a", {}, {"z": 1.0}), GridCell("b", {}, {"z": 2.0})), suite="made", task="a"
    )
    accept(publish_result("m@t=a", TASKS, system={"method": "m"}), "no data")
    shown = Catalogue({"m": method_of("m", {"t": preset})}, {})
    assert grids(site_of(results, shown))[0].runs == ()


def test_seeds_that_were_checked_unlike(publish_result: Publisher, results: Path, accept: Accept) -> None:
    """The weakest verified seed decides; one that nobody checked is another row, with an address of its own."""
    publish_result("y", TASKS, seed=0)
    accept(publish_result("y", TASKS, seed=1))
    (board,) = boards(read_results(results))
    assert board.rows[0].verification.basis is Basis.RUN_HERE
    shutil.rmtree(results)
    publish_result("x", {"made/a": {"": [0.5, 0.25]}}, seed=0)
    accept(publish_result("x", {"made/a": {"": [1.0, 1.0]}}, seed=1), "no data")
    (board,) = boards(read_results(results))
    assert [(row.seeds, row.score, row.verified) for row in board.all_rows] == [
        ((0,), 0.375, True),
        ((1,), 1.0, False),
    ]
    assert len([name for name in files(site_of(results)) if name.startswith("runs/")]) == 2


def test_a_board_of_unverified_rows_alone(publish_result: Publisher, results: Path, accept: Accept) -> None:
    """None is ranked or tested, and the first sentence says why."""
    for label in ("x", "y"):
        accept(publish_result(label, TASKS), "no data")
    (board,) = boards(read_results(results))
    assert (board.rows, len(board.unranked), board.pairs) == ((), 2, 0)
    assert "No system in this table has been verified yet" in files(site_of(results))[f"{STEM}.html"].decode()


def test_recomputed_rows_say_what_that_does_not_show(publish_result: Publisher, results: Path, accept: Accept) -> None:
    """They are ranked; that a perfect run could be made from public judgements is said on the board and the row."""
    accept(publish_result("x", TASKS))
    (board,) = boards(read_results(results))
    assert [row.verification.basis for row in board.rows] == [Basis.RECOMPUTED]
    pages = files(site_of(results))
    row = next(content.decode() for name, content in pages.items() if name.startswith("runs/"))
    assert ONLY_RECOMPUTED in pages[f"{STEM}.html"].decode()
    assert ONLY_RECOMPUTED in row


def test_copies_are_named(publish_result: Publisher, results: Path) -> None:
    """Equal numbers under two names, and as seeds of one system."""
    publish_result("x", {"made/a": {"": [0.5, 0.25]}})
    publish_result("y", {"made/a": {"": [0.5, 0.25]}})
    for seed in range(3):
        publish_result("z", {"made/a": {"": [0.75, 0.25]}}, seed=seed)
    (board,) = boards(read_results(results))
    assert [note for note in board.notes if "same numbers" in note] == [
        "y has the same numbers throughout as x, as a copy of its run would.",
        "z: of seeds 0, 1, 2, some have the same numbers throughout, as copies of one run would.",
    ]


def test_maintainers_records_alone_count_where_their_folder_is_given(
    publish_result: Publisher, results: Path, tmp_path: Path, accept: Accept
) -> None:
    """A record is of one bundle and must cover every number; then the row climbs by what was found since."""
    path, records = publish_result("x", TASKS), Records(tmp_path / "records")
    accept(path)
    numbers = {"made/a": {"": ["RR@100", "R@100"]}}

    def basis() -> Basis:
        return records.verification(result(path)).basis

    def record(recomputed: dict[str, dict[str, list[str]]], reproduced: Reproduction | None = None) -> Path:
        findings = Findings(recomputed, data={"made/a": {"": "0" * 64}})
        return records.write(path, sha256_file(path), findings, "2026", reproduced)

    assert basis() is Basis.SUBMITTED
    record({"made/a": {"": ["RR@100"]}})
    assert basis() is Basis.SUBMITTED
    record(numbers)
    assert basis() is Basis.RECOMPUTED
    record(numbers, Reproduction(verdict="OK", date="2026", by="A. Author, https://example.org/yes"))
    location = record(numbers)
    assert basis() is Basis.REPRODUCED, "what was found before stays"
    page = next(text.decode() for name, text in built(results, records).items() if name.startswith("runs/"))
    assert "verified: reproduced elsewhere by A. Author" in page
    assert "https://example.org/yes" in page
    publish_result("x", {**TASKS, "made/b": {"": [0.5]}})
    assert basis() is Basis.SUBMITTED, "of another bundle"
    location.rename(location.with_name(f"{sha256_file(path)}.json"))
    assert basis() is Basis.SUBMITTED, "a record that was renamed"
    location.with_name(f"{sha256_file(path)}.json").write_text("{}")
    with pytest.raises(StoreError, match="cannot be trusted"):
        basis()


def built(results: Path, records: Records) -> dict[str, bytes]:
    tables = tuple(boards(read_results(results), records=records))
    return files(replace(site_of(results), boards=tables, records=records))


def test_unverified_rows_decide_no_colour(lying: Board) -> None:
    """The scale of the map is that of the verified rows: one false result would fade all others."""
    assert heat.scale([lying]) == heat.scale([replace(lying, unranked=())])
    assert heat.scale([lying]).high < 1.0
