"""What a row states besides its numbers: refused where no run can write it, else shown as its author's word."""

import csv
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.cli.leaderboard_judges import SuiteJudges
from leaderboard.build import files
from leaderboard.submissions.add import add
from leaderboard.submissions.bundle import ValidationErrors, read_candidate
from leaderboard.submissions.metadata_checks import check_regime
from leaderboard.submissions.validate import validate
from suites import mrtydi
from tests.leaderboard.conftest import Bundle, Publisher, site_of
from tests.leaderboard.spoil import spoil
from tests.leaderboard.submissions.conftest import Look, Ran

SUBSET = ["tasks", "beir/tiny-beir", ""]
Changes = list[list[Any]]
IMPOSSIBLE: dict[str, tuple[Changes, str]] = {
    "chance": ([["set", ["system", "deterministic"], False]], "`deterministic` 'False' of method 'bm25'"),
    "seed": ([["set", ["seed"], 7]], "seed 7 of a deterministic system"),
    "regime": ([["set", ["regime"], "english"]], "regime 'english' of method 'bm25'"),
    "keys": ([["set", [*SUBSET, "keys", "index"], "0" * 32]], f"key '{'0' * 32}' of stage 'index'"),
    "library": ([["set", [*SUBSET, "libraries"], {"evil": 1}]], "libraries.evil"),
    "seconds": ([["set", [*SUBSET, "seconds", "index"], -5]], "'-5' seconds of 'index'"),
    "age": ([["set", [*SUBSET, "seconds", "index"], 1e300]], "'1e+300' seconds of 'index'"),
    "harness": ([["set", [*SUBSET, "harness"], "99.0"]], "retrieval-bench '99.0'"),
}
POSSIBLE: dict[str, tuple[Changes, str]] = {
    "profile": ([["set", ["profile"], "paper"]], "paper"),
    "machine": ([["set", [*SUBSET, "compute"], {"device": "TPU v9"}]], "device TPU v9"),
    "libraries": ([["set", [*SUBSET, "libraries"], {"evil": "1"}]], "evil"),
    "cost": ([["set", [*SUBSET, "seconds", "index"], 7200]], "2 h"),
    "keys": ([["set", [*SUBSET, "keys", "index"], "0123456789abcdef" * 2]], "0123456789ab"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_no_run_writes_is_refused(name: str, bundle: Bundle, look: Look) -> None:
    """In words that say what is there; the same bundle passes without the change."""
    assert look(bundle).accepted
    changes, fault = IMPOSSIBLE[name]
    spoil(bundle, changes)
    verdict = look(bundle)
    assert not verdict.accepted
    assert any(fault in str(reason.found) for reason in verdict.reasons), verdict.reasons


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999"])
def test_seconds_that_are_no_number_are_refused(value: str, bundle: Bundle, look: Look) -> None:
    """JSON knows none of them, whatever the seal says."""
    text = bundle.path.read_text(encoding="utf-8")
    bundle.path.write_text(re.sub(r'("index": )\d+\.\d+', rf"\g<1>{value}", text), encoding="utf-8")
    verdict = look(bundle)
    assert value in str(verdict.reasons[0].found)
    assert verdict.reasons[0].expected == "a finite number"


@pytest.mark.parametrize("name", POSSIBLE)
def test_what_only_its_author_knows_is_shown_so(name: str, bundle: Bundle, judges: SuiteJudges, tmp_path: Path) -> None:
    """The page of the row has the claim, and the words; the row is ranked as that of the honest bundle."""
    honest = Bundle(Path(shutil.copytree(bundle.folder, tmp_path / "honest")))
    changes, claim = POSSIBLE[name]
    spoil(bundle, changes)
    boards = []
    for submitted in (honest, bundle):
        results = tmp_path / f"board-{submitted.folder.name}"
        add([validate(submitted.folder, "it", judges)], results, "2026-11-21T12:00:00+00:00")
        boards.append(files(site_of(results)))
    (page,) = [content.decode() for path, content in boards[1].items() if "/runs/" in path and path.endswith(".html")]
    assert "numbers recomputed; cost, machine and libraries as handed in" in page
    environment = page[page.index('id="origin"') :]
    assert claim in environment
    assert "nobody can check them by the files" in environment
    assert _ranked(boards[0]) == _ranked(boards[1])


def _ranked(site: Mapping[str, bytes]) -> list[dict[str, str]]:
    """The rows of a board's CSV, without what they cost."""
    (table,) = [content.decode() for path, content in site.items() if path.endswith("suites/beir/unsupervised.csv")]
    rows = csv.DictReader(line for line in table.splitlines() if not line.startswith("#"))
    shown = ("system", "score", "low", "high", "ranks", "tied", "state", "checked", "beir/tiny-beir")
    return [{name: row[name] for name in shown} for row in rows]


def test_a_row_that_was_run_here_is_nobodys_word(ran: Ran) -> None:
    """The words are those of rows from elsewhere alone."""
    site = files(site_of(ran.local))
    (page,) = [content.decode() for path, content in site.items() if "/runs/" in path and path.endswith(".html")]
    assert "as handed in" not in page


@pytest.mark.parametrize(
    ("regime", "stages", "fault"),
    [
        ("unsupervised", ("init",), ""),
        ("english", ("init", "tune"), ""),
        ("english", ("init", "train_cross"), ""),  # of bm25 with a trained re-ranker
        ("english", ("index",), ""),  # of a plugin that says nothing of regimes
        ("english", ("init",), "regime 'english' of an encoder that was not fine-tuned"),
        ("unsupervised", ("init", "tune"), "regime 'unsupervised' of an encoder that was fine-tuned"),
    ],
)
def test_the_regime_is_that_of_the_stages(
    regime: str, stages: tuple[str, ...], fault: str, publish_result: Publisher
) -> None:
    """Where the suite is here: a tuned encoder belongs into no board of untuned ones, nor the other way round."""
    path = publish_result("mine", {"mrtydi/sw": {"": [0.5]}}, suite="mrtydi", heading={"regime": regime})
    candidate = read_candidate(path.parent, ValidationErrors("it"))
    assert candidate is not None
    graph = {stage: {"stage": stage, "choices": {}, "inputs": {}} for stage in stages}
    system = candidate.content.system.model_copy(update={"graph": graph})
    vars(candidate.result)["content"] = candidate.content.model_copy(update={"system": system})
    errors = ValidationErrors("it")
    assert mrtydi.SUITE.recipes.get("english")
    check_regime(candidate, {}, mrtydi.SUITE, errors)
    assert [str(error.found) for error in errors.listed()] == [fault] * bool(fault)
    unknown = ValidationErrors("it")
    check_regime(candidate, {}, "no suite here", unknown)
    assert len(unknown) == 0
