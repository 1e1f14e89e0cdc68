"""Results of the real pipeline pass with every number recomputed; a spoilt one is refused with file and reason."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from bench.evaluation.results.format import Content, PerQuery, Subset
from bench.plugins import load
from bench.types import Macro, Method, Suite
from leaderboard.submissions import bundle as limits
from leaderboard.submissions.bundle import ValidationErrors
from leaderboard.submissions.recompute import JudgedSubset
from leaderboard.submissions.run_checks import check_table
from leaderboard.submissions.validate import Verdict, require_recomputed, validate
from suites import beir, mrtydi
from tests.conftest import cases
from tests.leaderboard.conftest import Bundle
from tests.leaderboard.spoil import spoil
from tests.leaderboard.submissions.conftest import Look


@dataclass(frozen=True)
class NoData:
    """Judges who have no judgements, and know a suite or say why not."""

    installed: Suite | str = "no suite here"

    @property
    def methods(self) -> Mapping[str, Method]:
        """Those that are installed."""
        return {name: owned.value for name, owned in load().methods.items()}

    def suite(self, content: Content) -> Suite | str:
        """Return the same for every suite."""
        return self.installed

    def subset(self, content: Content, task: str, subset: str) -> JudgedSubset | str:
        return "no data here"


def reasons_of(verdict: Verdict) -> str:
    """All reasons, one a line."""
    return "\n".join(map(str, verdict.reasons))


def test_results_of_the_pipeline_pass(look: Look, bundle: Bundle, mini: Bundle) -> None:
    """Every number of both is recomputed, official ones too."""
    for submitted in (bundle, mini):
        verdict = look(submitted)
        assert reasons_of(verdict) == ""
        assert verdict.accepted
        assert verdict.findings.not_recomputed == {}
        assert set(verdict.findings.recomputed[submitted.task][""]) == {
            *submitted.subset["measures"],
            *submitted.subset["official"],
        }


def test_limits_of_a_result(bundle: Bundle, look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is exactly as large as allowed passes, and one more does not; 4 MiB of result, 1 MiB a file, 5,000 files."""
    assert (limits.LARGEST_RESULT, limits.LARGEST_FILE, limits.MOST_FILES) == (4 * 1024**2, 1024**2, 5_000)
    files = [path for path in bundle.folder.rglob("*") if path.is_file()]
    others = [path.stat().st_size for path in files if path != bundle.path]
    for name, size, refusal in (
        ("LARGEST_RESULT", bundle.path.stat().st_size, f"at most {bundle.path.stat().st_size - 1:,}"),
        ("LARGEST_FILE", max(others), f"at most {max(others) - 1:,}"),
        ("MOST_FILES", len(files), f"more than {len(files) - 1:,} files"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(limits, name, size)
            assert look(bundle).accepted
            patch.setattr(limits, name, size - 1)
            assert refusal in reasons_of(look(bundle))


@pytest.mark.parametrize(("columns", "sentence"), cases("measures-that-contradict-each-other"))
def test_measures_that_contradict_each_other(columns: dict[str, list[float]], sentence: str) -> None:
    """A deeper cut never finds less; what looks at the first document alone says the same. The last case is none."""
    subset = Subset(measures={name: column[0] for name, column in columns.items()}, queries=1)
    reasons = ValidationErrors("it")
    check_table(("made/a", ""), subset, PerQuery(queries=["q"], measures=columns), reasons)
    message = "\n".join(map(str, reasons.listed()))
    assert sentence in message
    assert bool(message) == bool(sentence)


def test_averages_are_computed_again(mini: Bundle, look: Look) -> None:
    """A macro average must be the mean of its members; one that could be given must not lack."""
    member = Macro("Avg. (1)", ("mrtydi/en",))
    judges = NoData(replace(mrtydi.SUITE, macros=(member,)))
    assert "found no average 'Avg. (1)'" in reasons_of(validate(mini.folder, "it", judges))
    false = {"name": "Avg. (1)", "measures": {**mini.subset["measures"], "RR@100": 1.0}}
    mini.rewrite(lambda content: content["macro"].append(false))
    message = reasons_of(validate(mini.folder, "it", judges))
    assert "found 'RR@100' of the average 'Avg. (1)' = 1.0, expected 0.7" in message


def test_a_substitute_must_say_so(bundle: Bundle) -> None:
    """A result that hides what its suite stands for would pass for the benchmark itself."""
    verdict = validate(bundle.folder, "it", NoData(replace(beir.SUITE, proxy_for="mrtydi")))
    assert "found suite proxy_for '', expected 'mrtydi'" in reasons_of(verdict)


def test_what_cannot_be_computed_again_is_told(bundle: Bundle) -> None:
    """Accepted, each number with its reason; under `require_recomputed` the reason is one to refuse."""
    verdict = validate(bundle.folder, "it", NoData())
    assert verdict.accepted
    assert verdict.findings.recomputed == {}
    assert set(verdict.findings.not_recomputed[bundle.task][""].values()) == {"no suite here"}
    refused = require_recomputed(verdict)
    assert [(reason.where, reason.hint) for reason in refused.reasons] == [("it", "no suite here")]
    assert refused.reasons[0].found.startswith("'nDCG@10' of beir/tiny-beir")


def test_a_run_that_lies_elsewhere(bundle: Bundle, look: Look) -> None:
    """It is not looked for, and the record says where it is."""

    def move(content: dict[str, Any]) -> None:
        seal = content["files"].pop(bundle.run_name)
        content["remote"] = {bundle.run_name: {"url": "https://x.org/r.gz", "sha256": seal, "bytes": 2_500_000}}

    bundle.rewrite(move)
    (bundle.folder / bundle.run_name).unlink()
    verdict = look(bundle)
    assert reasons_of(verdict) == ""
    why = "the run is not in the bundle (2.5 MB at https://x.org/r.gz)"
    assert verdict.findings.not_recomputed[bundle.task][""]["nDCG@10"] == why


def test_many_faults_of_a_file_are_counted(bundle: Bundle, look: Look) -> None:
    """Five are told."""
    bundle.edit_run(lambda lines: [line.replace(" Q0 ", " ") for line in lines])
    verdict = look(bundle)
    assert len(verdict.reasons) == 5
    assert verdict.more > 5


@pytest.mark.parametrize(
    ("changes", "file", "fault", "expected"), [pytest.param(*case, id=name) for name, *case in cases("corruptions")]
)
def test_a_spoilt_result_is_refused(
    look: Look, bundle: Bundle, changes: list[Any], file: str, fault: str, expected: str
) -> None:
    """Each says the file, what was found and what was expected."""
    spoil(bundle, changes)
    verdict = look(bundle)
    assert not verdict.accepted
    reasons = [(reason.where, reason.found, reason.expected) for reason in verdict.reasons]
    assert any(place == f"it/{file}" and fault in actual and expected in wish for place, actual, wish in reasons), (
        reasons
    )
    assert all(place.startswith("it") and actual and wish for place, actual, wish in reasons)


def test_values_of_questions_lie_in_the_bundle(bundle: Bundle, look: Look) -> None:
    """Pages are built from them, so that only runs may lie elsewhere."""
    name = bundle.run_name.replace("runs/", "per-query/").replace(".trec.gz", ".json.gz")

    def move(content: dict[str, Any]) -> None:
        seal = content["files"].pop(name)
        content["remote"] = {name: {"url": "https://x.org/q.gz", "sha256": seal, "bytes": 1000}}

    bundle.rewrite(move)
    (bundle.folder / name).unlink()
    message = reasons_of(look(bundle))
    assert f"found a `remote` file '{name}', expected runs of the result's own tasks alone" in message


def test_an_average_lacks_no_measure_and_has_none_of_its_own(mini: Bundle) -> None:
    """Each is the mean of the members in that measure; one that they lack cannot be computed again."""
    judges = NoData(replace(mrtydi.SUITE, macros=(Macro("Avg. (1)", ("mrtydi/en",)),)))
    right = dict(mini.subset["measures"])
    mini.rewrite(lambda content: content["macro"].append({"name": "Avg. (1)", "measures": dict(right)}))
    assert "of the average" not in reasons_of(validate(mini.folder, "it", judges))
    mini.rewrite(lambda content: content["macro"][0]["measures"].pop("RR@100"))
    assert "found 'RR@100' of the average 'Avg. (1)' = None" in reasons_of(validate(mini.folder, "it", judges))


def test_a_passport_names_the_data_that_are_here(bundle: Bundle, look: Look) -> None:
    """Another digest of the queries is refused, whatever the numbers are; a result without passport is not asked."""
    assert look(bundle).accepted
    for entry in ({"passport": {**bundle.subset["passport"], "queries": "0" * 16}}, {"passport": None}):
        bundle.rewrite(lambda content, entry=entry: content["tasks"][bundle.task][""].update(entry))  # type: ignore[misc]
        message = reasons_of(look(bundle))
        assert ("found a passport with other queries" in message) == (entry["passport"] is not None)
