"""The audit stage: what of a subset is looked for, how it is counted, and what is left of it."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from bench.core.errors import DataError
from bench.core.workspace import Parts, Workspace
from bench.data.contamination.index import AuditConfig
from bench.data.contamination.search import Text
from bench.pipeline.stages import audit
from bench.types import Item, Source

Make = Callable[..., Path]
RULES = AuditConfig()
LONG = "a rye sourdough rises slowly because its wild yeast works best in a cool kitchen"
MOTHS = "moths navigate by the moon and so they fly in spirals around a lamp at night"


class _Corpus:
    """Passages, and how often they were read."""

    def __init__(self, *items: Item, name: str = "corpus") -> None:
        self.items, self.name, self.readings = items, name, 0

    def read(self) -> Iterator[Item]:
        self.readings += 1
        yield from self.items

    def source(self) -> Source[Item]:
        return Source(self.name, "made/1", (), self.read)


def _training(*documents: str) -> Source[Text]:
    return Source("training", "made/1", (), lambda: (Text(f"d{at}", (text,)) for at, text in enumerate(documents)))


def _write(tmp_path: Path, audited: audit.Audited) -> tuple[Mapping[str, object], list[dict[str, object]]]:
    out = tmp_path / "out"
    out.mkdir()
    metadata = audit.write(Workspace(out, Parts(tmp_path / "parts")), audited)
    return metadata, [dict(line) for line in audit.findings(out)]


def test_questions_gold_passages_and_answers_are_counted(tmp_path: Path, make_subset: Make) -> None:
    """Relevant passages alone, each once, by text; answers that are long enough, each once; exact and near apart."""
    corpus = _Corpus(
        Item("p1", f"so {LONG} in winter", title="Bread"),
        Item("p2", MOTHS),
        Item("p3", f"distractor {LONG}"),
        Item("p4", "", title=f"{MOTHS}"),
        Item("p5", "nothing of the kind is anywhere at all in what was trained on"),
    )
    subset = make_subset(
        {"q1": {"p1": 1, "p2": 2}, "q2": {"p1": 1, "p3": 0}, "q3": {"p4": 1, "p5": 1}},
        texts={"q1": "Why does rye bread rise?", "q2": LONG.upper(), "q3": "never seen"},
        answers={
            "q1": ["yeast", "wild yeast works best in a cool kitchen"],
            "q3": ["yeast", "the moon and its silver spirals by night"],
        },
    )
    training = _training("Nothing.", f"It is known that {LONG}.", MOTHS, "Why does rye bread rise?")
    (report,) = audit.audit(training, [audit.AuditSubject(subset, corpus.source())], RULES)
    metadata, lines = _write(tmp_path, report)
    assert metadata == {
        "queries": {"total": 3, "exact": 2, "near": 0},
        "passages": {"total": 4, "exact": 2, "near": 1},
        "answers": {"total": 2, "exact": 1, "near": 0, "short": 1},
        "texts": 4,
    }
    assert [" ".join(str(line[name]) for name in ("kind", "id", "how", "where")) for line in lines] == [
        *("queries q1 equal d3", "queries q2 contained d1", "passages p1 run d1", "passages p2 equal d2"),
        *("passages p4 equal d2", "answers q1 contained d1"),
    ]
    assert lines[2]["text"] == f"so {LONG} in winter"
    assert lines[2]["said"] == f"It is known that {LONG}."


def test_grams_count_for_questions_alone(make_subset: Make) -> None:
    """A passage of the same words is not found by its grams; a training without text would seem free of any leak."""
    question = "Which moth flies in spirals around lamps?"
    corpus = _Corpus(Item("p1", question))
    first = make_subset({"q1": {"p1": 1}}, texts={"q1": question})
    training = _training("Which moth flies in spirals around a lamp?")
    (report,) = audit.audit(training, [audit.AuditSubject(first, corpus.source())], RULES)
    assert [(finding.part.kind, finding.how) for finding in report.findings] == [("queries", "alike")]
    subset = audit.AuditSubject(make_subset({"q": {"p": 1}}, "other"), _Corpus(Item("p", "y")).source())
    with pytest.raises(DataError, match="training: found no training text, expected at least one"):
        audit.audit(_training(), [subset], RULES)


def test_subsets_are_audited_together_as_each_alone(make_subset: Make) -> None:
    """The training texts are read once for all subsets, and so is a corpus that they share."""
    corpus, separate = _Corpus(Item("p1", LONG), Item("p2", MOTHS)), _Corpus(Item("p1", "something else"), name="own")
    subsets = [
        audit.AuditSubject(make_subset({"q": {"p1": 1}}, "a", texts={"q": LONG}), corpus.source()),
        audit.AuditSubject(make_subset({"q": {"p2": 1}}, "b", texts={"q": "unseen"}), corpus.source()),
        audit.AuditSubject(
            make_subset({"q": {"p1": 0}}, "c", texts={"q": MOTHS}, answers={"q": [LONG]}), separate.source()
        ),
    ]
    readings: list[int] = []

    def read() -> Iterator[Text]:
        readings.append(1)
        yield Text("d", (f"{LONG}; {MOTHS}",))

    training = Source("training", "made/1", (), read)
    together = audit.audit(training, subsets, RULES)
    assert len(readings) == 1
    assert corpus.readings == 1
    assert separate.readings == 0  # no passage of it is relevant
    assert together == [audit.audit(training, [subset], RULES)[0] for subset in subsets]
    assert [[(finding.part.kind, finding.how) for finding in subset.findings] for subset in together] == [
        [("queries", "contained"), ("passages", "contained")],
        [("passages", "contained")],
        [("queries", "contained"), ("answers", "contained")],
    ]
