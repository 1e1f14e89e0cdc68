"""score: run + judgements or answers → measures, per query and averaged."""

from __future__ import annotations

import gzip
import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.core.errors import UsageError
from bench.core.files import canonical, write_bytes
from bench.core.installed import version
from bench.core.workspace import Workspace
from bench.data.formats.trec import read_run, write_run
from bench.evaluation.measures.checks import judged
from bench.evaluation.measures.evaluate import Scores, evaluate, without_identical
from bench.evaluation.measures.specs import MeasureSpec, looks_for_answers
from bench.pipeline import memory
from bench.pipeline.stages import read
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.search import RUN, RankingStage
from bench.pipeline.stages.texts import StoreTexts, Texts
from bench.store.stage import FLATTEN_IN_KEY, NOT_IN_KEY, OPTIONAL, Cost, Resources, Stage, named
from bench.types import Json, Measure, OfficialScorer, Ranking, Run, Tie

if TYPE_CHECKING:
    from bench.evaluation.measures.answers import Answered

SCORES, VALUES, CUT = "scores.json", "per-query.json.gz", "run.trec.gz"
_QUESTION, _RANKED = 300.0, 0.5  # microseconds: a question with its measures, and each document of its ranking
_CUT_LINE = 11.0  # bytes of a deflated line


@dataclass(frozen=True, kw_only=True)
class Score(Stage):
    """Run + judgements → measures."""

    name, code = "score", 1
    ranking: RankingStage = field(metadata=named("run"))
    subset: Read
    texts: StoreTexts | None = field(default=None, metadata=OPTIONAL)  # of the passages, where answers are looked for
    suite: Mapping[str, Json]
    protocol: Protocol = field(metadata=FLATTEN_IN_KEY)
    tag: str = field(metadata=NOT_IN_KEY)  # last column of the cut run
    system_label: str = field(metadata=NOT_IN_KEY)

    title = property(lambda self: f"{self.system_label} {self.subset.title}")

    @property
    def cost(self) -> Cost:
        """In questions, so many microseconds each, and more for each ranked document."""
        each = _QUESTION + _RANKED * self.ranking.rules.k
        return Cost("score by depth", self.subset.questions, 1e6, start=0.5, each=each)

    @property
    def disk(self) -> int:
        """The run, cut at the deepest measure and deflated."""
        depth = min(self.ranking.rules.k, self.protocol.depth or self.ranking.rules.k)
        return int(self.subset.questions * depth * _CUT_LINE)

    @property
    def resources(self) -> Resources:
        """What the run takes, and the judgements."""
        return Resources(memory=memory.scoring(self.subset.questions * self.ranking.rules.k))

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write means, per-query values (with the evidence of answers) and the run, cut at the deepest measure."""
        path, subset, protocol = folders["ranking"] / RUN, folders["subset"], self.protocol
        rankings = read_run(path, protocol.tie, may_be_empty=True)
        scored = score(read.qrels(subset), rankings, protocol, answered(subset, protocol, folders.get("texts")))
        means: dict[str, Any] = {
            "queries": len(scored.scores.queries),
            "measures": scored.scores.means,
            "official": dict(scored.official),
        }
        write_bytes(space.out / SCORES, canonical(means))
        values = {name: list(column) for name, column in scored.scores.values.items()}
        table: dict[str, Json] = {"queries": list(scored.scores.queries), "measures": values}
        if scored.evidence:
            table["evidence"] = {name: list(column) for name, column in scored.evidence.items()}
        write_bytes(space.out / VALUES, gzip.compress(canonical(table), mtime=0))
        stream, depth = io.BytesIO(), protocol.depth
        cut = (
            Ranking(ranking.query, ranking.documents[:depth], ranking.scores[:depth]) for ranking in rankings.values()
        )
        write_run(stream, cut, self.tag)
        write_bytes(space.out / CUT, gzip.compress(stream.getvalue(), mtime=0))
        space.advance(len(scored.scores.queries))
        return {**means, **({"official_queries": dict(scored.official_queries)} if scored.official_queries else {})}


@dataclass(frozen=True)
class Protocol:
    """How a task is scored."""

    measures: tuple[MeasureSpec, ...]
    tie: Tie
    drop_identical: bool  # leave out a document whose id equals the query id
    official: tuple[OfficialScorer, ...]
    extra: Mapping[str, Measure]

    @property
    def by_documents(self) -> tuple[MeasureSpec, ...]:
        """The measures of judged documents."""
        return tuple(measure for measure in self.measures if not looks_for_answers(measure))

    @property
    def by_answers(self) -> tuple[MeasureSpec, ...]:
        """The measures that look for answers."""
        return tuple(measure for measure in self.measures if looks_for_answers(measure))

    def libraries(self) -> dict[str, str]:
        """Versions of what computes the measures, for keys and results; who cuts the tokens of `R@2kt` among them."""
        versions = {"pytrec-eval-terrier": version("pytrec-eval-terrier")}
        if self.by_answers:
            versions["regex"] = version("regex")
        if any(str(measure).endswith("kt") for measure in self.measures):
            from bench.evaluation.measures.kilotokens import tokeniser

            versions["tokeniser"] = tokeniser().name
        return versions

    def brought(self, *measures: MeasureSpec) -> dict[str, Json]:
        """Return the versions of those measures that plugins bring, by name."""
        return {measure.name: self.extra[measure.name].version for measure in measures if measure.name in self.extra}

    def identity(self) -> dict[str, Json]:
        """Return what can change scores."""
        return {
            "measures": [str(measure) for measure in self.measures],
            "extra": self.brought(*self.measures),
            "tie": self.tie,
            "drop_identical": self.drop_identical,
            "official": [scorer.name for scorer in self.official],
            "libraries": self.libraries(),
        }

    @property
    def depth(self) -> int | None:
        """The deepest cut, or None where a measure counts no documents (it has no cut, or one in tokens)."""
        cuts = [None if str(measure).endswith("kt") else measure.cut for measure in self.measures]
        return None if None in cuts else max(cut for cut in cuts if cut is not None)


@dataclass(frozen=True)
class Scored:
    """A scored run."""

    scores: Scores
    official: Mapping[str, float]  # what the official scorers say where they do otherwise, by name
    evidence: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)  # where answers were found
    # by name of an official value that leaves out queries which the run does not name: over how many queries it is
    official_queries: Mapping[str, int] = field(default_factory=dict)


def score(
    qrels: Mapping[str, Mapping[str, int]],
    rankings: Run,
    protocol: Protocol,
    answered: Answered | None = None,
    asked: Collection[str] | None = None,
) -> Scored:
    """Score a run, from here or from elsewhere, under a task's protocol. Pure.

    `qrels` are empty where only answers judge; `answered` holds accepted answers and where the passages' texts are.
    `asked` are the queries that the run was made for, None for all judged ones: to a scorer of answers, one of them
    without a ranking found nothing, while any other was not asked.

    Raises:
        UsageError: there is no judgement, or no answer for a measure that looks for one.
    """
    if protocol.drop_identical:
        rankings = without_identical(rankings)
    if protocol.by_answers and answered is None:
        raise UsageError(
            f"measure {protocol.by_answers[0]} looks for answers in the passages' texts, found judgements of documents "
            "alone; score against a task that has answers"
        )
    values: dict[str, tuple[float, ...]] = {}
    official: dict[str, float] = {}
    official_queries: dict[str, int] = {}
    evidence: Mapping[str, tuple[int | None, ...]] = {}
    queries: tuple[str, ...] = ()
    if protocol.by_documents or answered is None:
        scores = evaluate(qrels, rankings, protocol.by_documents, protocol.tie, protocol.extra)
        queries, values = scores.queries, dict(scores.values)
        for scorer in protocol.official:
            official_values = scorer.documents(qrels, rankings) if scorer.documents else {}
            official.update(official_values)
            official_queries |= _counted(scorer, official_values, queries, rankings)
    if answered is not None:
        from bench.evaluation.measures import answers

        queries = queries or tuple(answered.strings)
        strings = {query: answered.strings[query] for query in queries}  # in the order of the judgements
        ranked = judged({query: {} for query in queries}, rankings, protocol.tie)
        matches = answers.find_answers(answers.Answered(strings, answered.text), ranked, protocol.by_answers)
        values, evidence = {**values, **matches.values}, matches.evidence
        by_query = {name: dict(zip(queries, column, strict=True)) for name, column in matches.values.items()}
        empty = {query: Ranking(query, (), ()) for query in queries if asked is None or query in asked}
        for scorer in protocol.official:
            official_values = scorer.answers(by_query, {**empty, **ranked}) if scorer.answers else {}
            official.update(official_values)
            official_queries |= _counted(scorer, official_values, queries, {**empty, **ranked})
    ordered = {str(measure): values[str(measure)] for measure in protocol.measures}
    return Scored(Scores(queries, ordered), official, evidence, official_queries)


def _counted(scorer: OfficialScorer, values: Mapping[str, float], queries: Sequence[str], run: Run) -> dict[str, int]:
    """Return over how many queries the values of a scorer are, where it leaves some out."""
    answered_queries = sum(query in run for query in queries)
    return dict.fromkeys(values, answered_queries) if scorer.named_only and answered_queries < len(queries) else {}


def answered(subset: Path, protocol: Protocol, texts: Path | None) -> Answered | None:
    """Open what answer-based measures need (`texts`: its artefact); None where none looks for answers, or none are."""
    if not protocol.by_answers or texts is None:
        return None
    from bench.evaluation.measures.answers import Answered

    strings = read.answers(subset)
    return Answered(strings, Texts(texts)) if strings else None
