"""A page a row: the command, where its numbers come from, every language, every setting, every query."""

from collections.abc import Iterator, Sequence

from bench.core.messages import bare
from bench.evaluation.results import RESULT
from bench.evaluation.results.format import place
from bench.evaluation.results.read import Result
from leaderboard.records import ONLY_RECOMPUTED, Records, State
from leaderboard.site import captions, perquery, text
from leaderboard.site.render import Files, Renderer
from leaderboard.site.rows import Entry, compare_stem, part
from leaderboard.site.site import board_stem
from leaderboard.site.systems import seconds

LARGEST_RUN = 1 << 20
"""Bytes of a file of a bundle that is copied; larger ones stay where the result says."""
_BUDGET = 40 << 10
"""Bytes of a page."""
_MOST = (120, 60, 30, 10)
"""Lines of each list of a page: the first that make it small enough."""
_LONG = 300
_DIGITS = 12  # of a hash or key, enough to identify artefacts


def files(renderer: Renderer, every: Sequence[Entry]) -> Files:
    """A page for every row, its values query by query, and the query ids once a task."""
    asked: set[str] = set()
    for entry in every:
        held = []
        for table in perquery.tables(entry):
            where = perquery.place(entry, table)
            held.append(where)
            yield where.csv, perquery.as_csv(entry, table)
            if where.script:
                yield where.script, perquery.script(entry, table)
            if where.script and where.ids not in asked:
                asked.add(where.ids)
                yield where.ids, perquery.ids_script(table)
        for most in _MOST:
            content = _cut(renderer, entry, held, most)
            if len(content) <= _BUDGET:
                break
        yield f"{entry.stem}.html", content


def run_files(every: Sequence[Entry]) -> Files:
    """The bundles of all rows, for a build that was asked for them.

    Of the user's own folders the result file alone, for their ids are nobody else's business; what is too large stays
    out.
    """
    for entry in every:
        for result in entry.results:
            stem = f"{entry.stem}/seed-{result.content.seed}"
            yield f"{stem}/{RESULT}", result.path.read_bytes()
            for name in () if entry.board.data == "local" else result.content.files:
                path = result.path.parent / name
                if path.is_file() and path.stat().st_size <= LARGEST_RUN:
                    yield f"{stem}/{name}", path.read_bytes()


def _cut(renderer: Renderer, entry: Entry, held: Sequence[perquery.Held], most: int) -> bytes:
    """Render the page of a row with at most so many lines of each list."""
    board, row = entry.board, entry.row
    by_task = {task: {name: values.get(task) for name, values in row.by_measure.items()} for task in row.tasks}
    tasks = [(column, by_task[column.task]) for column in board.columns if column.task in by_task]
    computes = (part(free, "compute").items() for _, _, _, free in entry.legs())
    machines = {", ".join(f"{key} {value}" for key, value in compute)[:_LONG] for compute in computes} - {""}
    shown = [one for one in held[:most] if one.script]
    settings, downloads = entry.settings(), list(_downloads(entry))
    return renderer.page(
        "run.html",
        entry.stem,
        title=f"{row.name} · {captions.title(board)} · {board.setting}",
        data=board.data,
        stands_for=board.stands_for,
        entry=entry,
        board=board,
        row=row,
        sentence=sentence(entry),
        suite=f"{board_stem(board)}.html",
        compare=f"{compare_stem(board)}.html#a={text.slug(row.name)}",
        measures=sorted(row.by_measure),
        tasks=tasks[:most],
        trust=[f"Seed {one.content.seed}: {_checked(renderer.site.records, one)}" for one in entry.results][:most],
        provenance=list(_provenance(entry))[:most],
        environment=[*row.libraries.items(), *(("machine", one) for one in sorted(machines))][:most],
        seconds=list(seconds(entry.system.first).items())[:most],
        settings=settings[:most],
        held=held[:most],
        downloads=downloads[:most],
        left=max(len(tasks), len(settings), len(held)) > most,
        page_data=text.json_for_page(
            {  # what the script needs to find the values of each leg: the name of its queries, by its own
                "data": f"{'../' * entry.stem.count('/')}{entry.inside}data/",
                "id": entry.id,
                "legs": {one.table.name: one.table.ids for one in shown},
            }
        ),
    )


def sentence(entry: Entry) -> str:
    """Return the outcome of a row: its score with the interval, its rank, and whether it is in the best group."""
    board, row = entry.board, entry.row
    if not row.state.verified:
        return f"{row.name} is not ranked, because some of its numbers could not be recomputed."
    if row.score is None:
        tasks = text.plural(len(board.columns), "task")
        return f"{row.name} has results on {len(row.tasks)} of {tasks}, so it is not ranked."
    said = f"{row.name} reaches {text.number(row.score)} {board.measure}"
    said += f", 95 % {text.bounds(row.low, row.high)}" if row.low is not None else ""
    if row.ranks:
        said += f"; rank {text.place(row.ranks)} of {len(board.rows)}"
        said += ", in the best group" if row.tied else ""
    return f"{said}."


def _checked(records: Records, result: Result) -> str:
    """Return how far a result was checked, by whom and when."""
    state = records.state(result)
    if state is State.RUN_HERE:
        return "run where this site was built."
    record = records.find(result.path)
    accepted = result.accepted if records.folder is None else None
    said = state.title
    if record:
        said += f" ({record.when}, by version {record.version}"
        said += f"; made again {record.made_again.when}: {record.made_again.verdict}" if record.made_again else ""
        said += f"; agreed at {record.agreed})" if record.agreed else ")"
    elif accepted:
        said += f": {accepted.said} ({accepted.when}, by version {accepted.version})"
    else:
        said += ": no maintainer has recorded a check"
    return f"{said}. {ONLY_RECOMPUTED}." if state is State.RECOMPUTED else f"{said}."


def _provenance(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield versions and hashes that identify the row."""
    row, board = entry.row, entry.board
    yield "method", f"{row.system.method}, version {row.system.version}"
    yield "suite", f"{board.suite}, version {board.version}"
    if made := {str(free["harness"]) for _, _, _, free in entry.legs() if free.get("harness")}:
        yield "made by", f"retrieval-bench {', '.join(sorted(made))}"
    yield "system", row.system.hash
    yield "results folder", entry.system.first.path.parent.parent.name  # a page's address also hashes its table
    yield "seeds", ", ".join(map(str, row.seeds))
    yield "profile", entry.system.first.content.profile
    for name in ("backbone", "budget", "budget_flops", "budget_steps"):
        if value := getattr(row.system, name):
            yield name.replace("_", " in "), f"{value:,}" if isinstance(value, int | float) else str(value)
    if row.system.corpus:
        yield "pretrained on", row.system.corpus.name
    if releases := {leg.release for _, _, leg, _ in entry.legs()} - {""}:
        yield "release of the data", ", ".join(sorted(releases))
    for _, _, leg, _ in list(entry.legs())[:1]:  # later tasks have their own keys of what is not shared
        for stage, key in leg.keys.items():
            yield f"key of {stage}", key[:_DIGITS]
    for audit in _audits(entry):
        yield "overlap of training text and test", audit


def _audits(entry: Entry) -> list[str]:
    found: dict[str, None] = {}
    for _, _, _, free in entry.legs():
        badges = free.get("audits")
        for badge in badges if isinstance(badges, list) else ():
            if isinstance(badge, dict):
                said = badge.get("audited")
                state = said[:_LONG] if isinstance(said, str) else "not audited"
                found[f"{str(badge.get('corpus'))[:_LONG]}: {state}"] = None
    return list(found)


def _downloads(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield path and label of the files that a build with runs has."""
    for result in entry.results:
        stem, seed = f"{entry.stem}/seed-{result.content.seed}", f"seed {result.content.seed}"
        yield f"{stem}/{RESULT}", f"result file, {seed}"
        for task, legs in entry.system.first.content.tasks.items():
            for leg in legs:
                yield f"{stem}/{place('runs', task, leg)}", f"run {bare(task)} {leg}".strip() + f", {seed}"
