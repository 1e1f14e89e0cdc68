"""Results of the real pipeline pass with every number recomputed; a spoilt one is refused and says why."""

import gzip
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.core.files import write_sealed
from bench.evaluation.results.format import Content, Leg, PerQuery
from bench.types import Macro
from leaderboard.submissions.bundle import Reasons
from leaderboard.submissions.invariants import table_faults
from leaderboard.submissions.recompute import Judged, SuiteKnown
from leaderboard.submissions.validate import Verdict, validate, without_trust
from tests.conftest import cases
from tests.leaderboard.conftest import Bundle
from tests.leaderboard.submissions.conftest import Look, Ran


@dataclass(frozen=True)
class NoData:
    """Judges who have no judgements, and know a suite or say why not."""

    known: SuiteKnown | str = "no suite here"
    methods: tuple[str, ...] = ("bm25", "msm")

    def suite(self, content: Content) -> SuiteKnown | str:
        """Return what is known, whatever the suite."""
        return self.known

    def leg(self, content: Content, task: str, leg: str) -> Judged | str:
        """Return why there is no judgement."""
        return "no data here"


def told(verdict: Verdict) -> str:
    """All reasons, one a line."""
    return "\n".join(map(str, verdict.reasons))


def test_results_of_the_pipeline_pass(look: Look, bundle: Bundle, mini: Bundle) -> None:
    """Every number of both is recomputed, official ones too."""
    for one in (bundle, mini):
        verdict = look(one)
        assert told(verdict) == ""
        assert verdict.accepted
        assert verdict.not_recomputed == {}
        assert set(verdict.recomputed[one.task][""]) == {*one.leg["measures"], *one.leg["official"]}


@pytest.mark.parametrize(
    ("columns", "sentence"),
    cases("measures-that-contradict-each-other"),
)
def test_measures_that_contradict_each_other(columns: dict[str, list[float]], sentence: str) -> None:
    """A deeper cut never finds less; what looks at the first document alone says the same. The last case is none."""
    about = Leg(measures={name: column[0] for name, column in columns.items()}, queries=1)
    reasons = Reasons("it")
    table_faults(("made/a", ""), about, PerQuery(queries=["q"], measures=columns), reasons)
    said = "\n".join(map(str, reasons.listed()))
    assert sentence in said
    assert bool(said) == bool(sentence)


def test_averages_are_computed_again(mini: Bundle, look: Look) -> None:
    """A macro average must be the mean of its members; one that could be given must not lack."""
    member = Macro("Avg. (1)", ("mrtydi/en",))
    judges = NoData(SuiteKnown("Mr. TyDi", "RR@100", "", (member,)))
    assert "found no average 'Avg. (1)'" in told(validate(mini.folder, "it", judges))
    false = {"name": "Avg. (1)", "measures": {**mini.leg["measures"], "RR@100": 1.0}}
    mini.rewrite(lambda content: content["macro"].append(false))
    said = told(validate(mini.folder, "it", judges))
    assert "found 'RR@100' of the average 'Avg. (1)' = 1.0, expected 0.7" in said


def test_a_substitute_must_say_so(bundle: Bundle) -> None:
    """A result that hides what its suite stands for would pass for the benchmark itself."""
    verdict = validate(bundle.folder, "it", NoData(SuiteKnown("BEIR", "nDCG@10", "mrtydi", ())))
    assert "found suite stands_for '', expected 'mrtydi'" in told(verdict)


def test_what_cannot_be_computed_again_is_told(bundle: Bundle) -> None:
    """Accepted, each number with its reason; under `without_trust` the reason is one to refuse."""
    verdict = validate(bundle.folder, "it", NoData())
    assert verdict.accepted
    assert verdict.recomputed == {}
    assert set(verdict.not_recomputed[bundle.task][""].values()) == {"no suite here"}
    refused = without_trust(verdict)
    assert [(one.where, one.hint) for one in refused.reasons] == [("it", "no suite here")]
    assert refused.reasons[0].found.startswith("'nDCG@10' of beir/tiny-beir")


def test_a_run_that_lies_elsewhere(bundle: Bundle, look: Look) -> None:
    """It is not looked for, and the record says where it is."""

    def move(content: dict[str, Any]) -> None:
        seal = content["files"].pop(bundle.run_name)
        content["remote"] = {bundle.run_name: {"url": "https://x.org/r.gz", "sha256": seal, "bytes": 2_500_000}}

    bundle.rewrite(move)
    (bundle.folder / bundle.run_name).unlink()
    verdict = look(bundle)
    assert told(verdict) == ""
    why = "the run is not in the bundle (2.5 MB at https://x.org/r.gz)"
    assert verdict.not_recomputed[bundle.task][""]["nDCG@10"] == why


def test_many_faults_of_a_file_are_counted(bundle: Bundle, look: Look) -> None:
    """Five are told."""
    bundle.edit_run(lambda lines: [line.replace(" Q0 ", " ") for line in lines])
    verdict = look(bundle)
    assert len(verdict.reasons) == 5
    assert verdict.more > 5


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in some JSON."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, one in inner for place in places(one, (*at, key)))]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_content_breaks_the_check(ran: Ran, data: st.DataObject) -> None:
    """Whatever stands at any place of a result, it is a verdict and never a crash."""
    content = Bundle(ran.local).content
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.sampled_from([place for place in places(content) if place]))
        target = content
        for key in at[:-1]:
            target = target[key]
        if data.draw(st.booleans()):
            target[at[-1]] = data.draw(JSON)
        elif isinstance(target, dict):
            target[data.draw(st.text(max_size=9))] = target.pop(at[-1])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "in"
        folder.mkdir()
        for name in Bundle(ran.local).content["files"]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ran.local / name).read_bytes())
        try:
            write_sealed(folder / "result.json", content)
        except UnicodeEncodeError:
            return  # nobody can write such a file
        verdict = validate(folder, "it", NoData())
        assert all(str(fault) for fault in verdict.reasons)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=JSON | st.fixed_dictionaries({"queries": JSON, "measures": JSON}), lines=st.binary(max_size=60))
def test_no_file_breaks_the_check(ran: Ran, table: Any, lines: bytes) -> None:
    """Nor does anything in the files beside it."""
    with tempfile.TemporaryDirectory() as scratch:
        one = Bundle(Path(shutil.copytree(ran.local, Path(scratch) / "in")))
        try:
            one.put(one.values_name, gzip.compress(json.dumps(table, ensure_ascii=False).encode(), mtime=0))
        except UnicodeEncodeError:
            return
        one.put(one.run_name, gzip.compress(lines, mtime=0))
        assert not validate(one.folder, "it", NoData()).accepted
