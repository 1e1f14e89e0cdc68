"""Runs from elsewhere: read, checked against the task that they claim to answer, and scored under its protocol."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.config.profiles import choose_data, profile
from bench.core.errors import DataError, UsageError
from bench.core.publications import marked, tokens_note
from bench.data.formats.faults import Faults
from bench.data.formats.trec import read_empty, read_qrels, read_run, run_lines
from bench.evaluation.measures.evaluate import coverage
from bench.evaluation.measures.specs import parse, parse_many
from bench.evaluation.tables import Column, Table, as_html, percent
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.judging import SubsetIds, judging
from bench.pipeline.settings import resolve_run
from bench.pipeline.stages import score
from bench.pipeline.tasks import all_known, tasks_of
from bench.plugins import Plugins
from bench.store.store import Store
from bench.types import Candidates, DataRequest, Ranking, Run, Source, Tie

OFFICIAL_ORDER = "candidates"
"""What `--run` says for the order in which a release gives its candidates."""


@dataclass(frozen=True, repr=False)
class External:
    """What came of scoring a run from elsewhere: means over all judged queries, and each query's values by measure."""

    title: str
    means: Mapping[str, float]
    official: Mapping[str, float]  # what official scorers say where they do otherwise
    queries: int
    per_query: Mapping[str, Mapping[str, float]]
    notices: tuple[str, ...]  # sentences for people

    def table(self) -> Table:
        """Lay the means out."""
        heads = (Column("measure"), Column("percent", number=True, show=percent), Column("fraction", number=True))
        rows = tuple((name, value, f"{value:.6f}") for name, value in (*self.means.items(), *self.official.items()))
        return Table(f"{self.title} · {self.queries:,} judged queries", heads, rows)

    def __repr__(self) -> str:
        """Say the means in a line."""
        return f"{self.table().caption}: " + ", ".join(f"{name} {percent(mean)}" for name, mean in self.means.items())

    def _repr_html_(self) -> str:
        return as_html(self.table())


def _external(title: str, scored: score.Scored, notices: Sequence[str]) -> External:
    table = scored.scores
    rows = {
        query: {name: column[place] for name, column in table.values.items()}
        for place, query in enumerate(table.queries)
    }
    return External(title, table.means, scored.official, len(table.queries), rows, tuple(notices))


def score_run(run_file: Path, plugins: Plugins, store: Store, **options: Any) -> External:
    """Score a run file against a file of judgements or against a task, as the options of `bench score` say.

    Args:
        run_file: a TREC run, or `candidates` for the official order of a task that gives them.
        plugins: what is installed.
        store: keeps what the checks of a task found.
        options: those of `score_against_files` if `qrels` is among them, else those of `score_against_task`.

    Raises:
        UsageError: options of both, or neither of them; and as the two functions do.
    """
    typed = {name: value for name, value in options.items() if value}
    qrels, tie = typed.pop("qrels", None), typed.pop("tie", None)
    if qrels is not None:
        measures = typed.pop("measures", None)
        if typed:
            clash = ", ".join(f"--{name.removesuffix('s').replace('_', '-')}" for name in typed if name != "data_dir")
            if clash:
                raise UsageError(found=f"--qrels with {clash}", expected="one or the other")
        return score_against_files(qrels, run_file, measures, tie or "trec", plugins)
    if not (typed.get("suite") and typed.get("task")):
        raise UsageError(
            found="neither --qrels FILE nor --suite NAME --task NAME", expected="one of the two along with --run FILE"
        )
    if tie:
        raise UsageError(
            found="--tie with --suite", expected="--suite alone", hint="the task decides the order of equal scores"
        )
    return score_against_task(plugins, store, run_file=run_file, **typed)


def score_against_files(qrels: Path, run_file: Path, measures: str | None, tie: Tie, plugins: Plugins) -> External:
    """Score a run file against a judgements file.

    Queries of the run without a judgement are ignored, as trec_eval does, and reported; documents may be unjudged.

    Args:
        qrels: TREC qrels, or BEIR's table.
        run_file: a TREC run.
        measures: names separated by blanks: `"nDCG@10 R@100"`.
        tie: the order of equal scores.
        plugins: may bring further measures.

    Raises:
        UsageError: no measures, or an unknown one.
        DataError: a malformed file, or no query in both.
    """
    extra_measures = plugins.measures_by_name
    if not measures:
        raise UsageError(found="no --measures", expected='some, e.g. --measures "nDCG@10 R@100 RR@100"')
    specs = parse_many(measures, extra_measures)
    judgements, rankings = read_qrels(qrels), read_run(run_file, tie)
    covered = coverage(judgements, rankings)
    if len(covered.missing) == len(judgements):
        line = first_lines(run_file, covered.unexpected[:1])[covered.unexpected[0]]
        raise DataError(
            run_file,
            line,
            f"query id {covered.unexpected[0]!r}, and no query that is judged",
            f"ids like {covered.missing[0]!r} of {qrels}",
            "the two files do not belong together",
        )
    notices = []
    if covered.unexpected:
        line = first_lines(run_file, covered.unexpected[:1])[covered.unexpected[0]]
        notices.append(
            f"{run_file}:{line}: found query id {covered.unexpected[0]!r}"
            + (f" and {len(covered.unexpected) - 1} more" if len(covered.unexpected) > 1 else "")
            + f", expected queries judged in {qrels}; ignored, as trec_eval does"
        )
    notices += _missing(covered.missing, len(judgements))
    protocol = score.Protocol(specs, tie, drop_identical=False, official=(), extra=extra_measures)
    return _external(f"{run_file} against {qrels}", score.score(judgements, rankings, protocol), notices)


def score_against_task(
    plugins: Plugins,
    store: Store,
    *,
    suite: str,
    task: str,
    run_file: Path,
    subset: str | None = None,
    data: str | None = None,
    data_dir: Path | None = None,
    measures: str | None = None,
    sets: Sequence[str] = (),
) -> External:
    """Score a run file against a task of a suite under its protocol.

    The task's own checks run first (and are kept in the store); then every id of the run must be known to it.

    Args:
        plugins: what is installed.
        store: keeps what the checks found.
        suite: name of the suite.
        task: name of the task, or a folder.
        run_file: a TREC run, or `candidates`.
        subset: the subset; needed where the task has several.
        data: `official` or `mini`; default: that of the default profile.
        data_dir: the folder of official data.
        measures: names separated by blanks; default: the task's.
        sets: `KEY=VALUE` settings of the harness.

    Raises:
        UsageError: an unknown suite, task, subset or measure.
        DataError: a malformed run, or an id that the task does not know.
    """
    size = profile()
    of_suite = plugins.suite(suite)
    all_known((task,), [of_suite])
    settings, harness_settings = resolve_run(profile=size, sets=sets)
    tasks = tasks_of(of_suite, (task,), DataRequest(choose_data(size, data), data_dir, world=settings.mini.world))
    if len(tasks) != 1:
        covered = ", ".join(item.id for item in tasks)
        raise UsageError(where="--task", found=f"{task}, which covers {covered}", expected="one of them")
    target = tasks[0]
    names = [part.name for part in target.subsets]
    if subset not in names and (subset is not None or len(names) > 1):
        typed = f"--subset {subset}" if subset else "no --subset"
        raise UsageError(where=target.id, found=typed, expected=f"one of the subsets {', '.join(names)}")
    part = target.subsets[0 if subset is None else names.index(subset)]
    official = str(run_file) == OFFICIAL_ORDER and not run_file.exists()
    if official and part.candidates is None:
        raise UsageError(
            found=f"--run {OFFICIAL_ORDER}", expected="a run file", hint=f"{target.id} searches a whole corpus"
        )
    extra_measures = plugins.measures_by_name
    specs = (
        parse_many(measures, extra_measures)
        if measures
        else tuple(parse(name, extra_measures) for name in target.measures)
    )
    graph = GraphBuilder(store, plugins.measures_by_name, harness_settings)
    judge = judging(target, part, specs, graph, settings.data.unknown_ids)
    empty: tuple[str, ...] = ()
    if official and part.candidates is not None:
        rankings = official_order(part.candidates)
    else:
        rankings, empty = read_run(run_file, target.tie), read_empty(run_file)
        _ids_known(run_file, rankings, judge.ids)
    missing = _missing(coverage(dict.fromkeys(judge.queries), rankings).missing, len(judge.queries))
    against = marked(target.id, of_suite.proxy_for)
    name = f"the official order of the candidates of {against}" if official else f"{run_file} against {against}"
    scored = judge.score(rankings, {*rankings, *empty})
    total, rule = len(scored.scores.queries), "the official scorer leaves out those that the run does not name"
    over = [
        f"{measure} is over {count:,} of {total:,} judged queries: {rule}"
        for measure, count in scored.official_queries.items()
    ]
    note = tokens_note(scored.scores.values, judge.protocol.libraries())
    return _external(name, scored, [*missing, *over, *filter(None, [note])])


def official_order(source: Source[Candidates]) -> Run:
    """Return the candidates of every query as the release orders them; scores fall by one where it gives none."""
    rankings = {}
    for row in source.read():
        scores = row.scores or tuple(float(-place) for place in range(len(row.documents)))
        rankings[row.query] = Ranking(row.query, row.documents, scores)
    return rankings


def _missing(queries: Sequence[str], total: int) -> list[str]:
    """Return notices of judged queries that the run lacks; they count 0."""
    if not queries:
        return []
    return [f"the run lacks {len(queries)} of {total} judged queries, e.g. {queries[0]!r}; each counts 0"]


def _ids_known(run_file: Path, rankings: Run, ids: SubsetIds) -> None:
    """Refuse a run that names queries or documents which the task does not have."""
    documents = list(dict.fromkeys(name for ranking in rankings.values() for name in ranking.documents))
    with Faults() as faults:
        for query, line in first_lines(run_file, [name for name in rankings if name not in ids.queries]).items():
            faults.add(DataError(run_file, line, f"query id {query!r}", f"one of {ids.queries_name}"))
        unknown = [name for name, is_known in zip(documents, ids.documents(documents), strict=True) if not is_known]
        for document, line in first_lines(run_file, unknown, column=2).items():
            faults.add(DataError(run_file, line, f"document id {document!r}", f"one of {ids.documents_name}"))


def first_lines(run_file: Path, words: Collection[str], column: int = 0) -> dict[str, int]:
    """Return the first line of a run file on which each word occurs in a column (0: the query, 2: the document)."""
    pending, line_of = set(words), dict[str, int]()
    for number, text in run_lines(run_file) if pending else ():
        words = text.split()
        if len(words) > column and words[column] in pending:
            line_of[words[column]] = number
            pending.remove(words[column])
            if not pending:
                break
    return line_of
