"""A page a row: the command, where its numbers come from, every language, every setting, every query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.results import RESULT
from bench.substitutes import mark
from bench.wording import bare
from leaderboard import perquery, telling, text
from leaderboard.kit import Files, Renderer
from leaderboard.places import suite_stem
from leaderboard.rows import Entry, compare_stem, part
from leaderboard.schema import place

LARGEST_RUN = 1 << 20
"""Bytes of a file of a bundle that is copied; larger ones stay where the result says."""
_BUDGET = 40 << 10
"""Bytes of a page."""
_MOST = (120, 60, 30, 10)
"""Lines of each list of a page: the first that make it small enough."""
_LONG = 300
_DIGITS = 12  # of a hash or key, which tell artefacts apart


def files(renderer: Renderer, every: Sequence[Entry]) -> Files:
    """A page for every row, its values query by query, and the query ids once a task."""
    asked: set[str] = set()
    for entry in every:
        notes = _notes(entry)
        held = []
        for table in perquery.tables(entry):
            where = perquery.place(entry, table)
            held.append(where)
            yield where.csv, perquery.as_csv(entry, table, notes)
            if where.script:
                yield where.script, perquery.script(entry, table)
            if where.script and where.ids not in asked:
                asked.add(where.ids)
                yield where.ids, perquery.ids_script(table)
        yield f"{entry.stem}.html", _page(renderer, entry, held)


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


def _notes(entry: Entry) -> list[str]:
    """What stands above the numbers in a file of other data than official, and of a substitute."""
    board = entry.board
    local = [] if board.data == "official" else [f"{board.data} data: not comparable with official numbers"]
    return local + ([mark(board.stands_for)] if board.stands_for else [])


def _page(renderer: Renderer, entry: Entry, held: Sequence[perquery.Held]) -> bytes:
    """The page of a row; its lists are cut until it is as small as such a page must be."""
    for most in _MOST:
        content = _cut(renderer, entry, held, most)
        if len(content) <= _BUDGET:
            break
    return content


def _cut(renderer: Renderer, entry: Entry, held: Sequence[perquery.Held], most: int) -> bytes:
    """The page of a row with so many lines of each list, at most."""
    board, row = entry.board, entry.row
    tasks = [(column, _values(entry, column.task)) for column in board.columns if column.task in row.tasks]
    settings, downloads = entry.settings(), list(_downloads(entry))
    return renderer.page(
        "run.html",
        entry.stem,
        title=f"{row.name} · {telling.title(board)} · {board.setting}",
        data=board.data,
        stands_for=board.stands_for,
        entry=entry,
        board=board,
        row=row,
        sentence=sentence(entry),
        suite=f"{suite_stem(board.suite, board.setting, board.data, board.stands_for)}.html",
        compare=f"{compare_stem(board)}.html#a={text.slug(row.name)}",
        measures=sorted(row.by_measure),
        tasks=tasks[:most],
        trust=[(result, result.accepted) for result in entry.results][:most],
        provenance=list(_provenance(entry))[:most],
        environment=list(_environment(entry))[:most],
        seconds=_seconds(entry)[:most],
        settings=settings[:most],
        held=held[:most],
        downloads=downloads[:most],
        left=max(len(tasks), len(settings), len(held)) > most,
        told=text.json_for_page(_told(entry, held[:most])),
    )


def _told(entry: Entry, held: Sequence[perquery.Held]) -> dict[str, Any]:
    """What the script needs to find the values of each leg: the name of its queries, by its own."""
    return {
        "data": f"{'../' * entry.stem.count('/')}{entry.inside}data/",
        "id": entry.id,
        "legs": {one.table.name: one.table.ids for one in held if one.script},
    }


def sentence(entry: Entry) -> str:
    """What the row came to: its score with the interval, its rank, and how many are not told apart from it."""
    board, row = entry.board, entry.row
    if row.score is None:
        return (
            f"{row.name} has {len(row.tasks)} of {text.plural(len(board.columns), 'task')} of this table, so no rank."
        )
    said = f"{row.name} reaches {text.number(row.score)} {board.measure}"
    said += f", 95 % {text.bounds(row.low, row.high)}" if row.low is not None else ""
    if row.ranks:
        said += f"; rank {text.place(row.ranks)} of {len(board.rows)}"
        said += ", in the best group" if row.tied else ""
    return f"{said}."


def _values(entry: Entry, task: str) -> dict[str, float | None]:
    """A task's value by measure."""
    return {name: values.get(task) for name, values in entry.row.by_measure.items()}


def _provenance(entry: Entry) -> Iterator[tuple[str, str]]:
    """Versions and hashes that pin the row down."""
    row, board = entry.row, entry.board
    yield "method", f"{row.system.method}, version {row.system.version}"
    yield "suite", f"{board.suite}, version {board.version}"
    made = {str(leg["harness"]) for _, _, leg in entry.legs() if leg.get("harness")}
    if made:
        yield "made by", f"retrieval-bench {', '.join(sorted(made))}"
    yield "system", row.system.hash
    yield "seeds", ", ".join(map(str, row.seeds))
    yield "profile", entry.system.first.content.profile
    for name in ("backbone", "budget", "budget_flops"):
        value = getattr(row.system, name)
        if value:
            yield name.replace("_", " in "), f"{value:,}" if isinstance(value, int | float) else str(value)
    if row.system.corpus:
        yield "pretrained on", row.system.corpus.name
    releases = {str(leg["release"]) for _, _, leg in entry.legs() if leg.get("release")}
    if releases:
        yield "release of the data", ", ".join(sorted(releases))
    for key, value in _keys(entry).items():
        yield f"key of {key}", value
    for audit in _audits(entry):
        yield "overlap of training text and test", audit


def _keys(entry: Entry) -> dict[str, str]:
    """Keys of the stages of the first task; later tasks have their own of what is not shared."""
    for _, _, leg in entry.legs():
        return {stage: str(key)[:_DIGITS] for stage, key in part(leg, "keys").items()}
    return {}


def _audits(entry: Entry) -> list[str]:
    """What is known of test questions in training text."""
    found: dict[str, None] = {}
    for _, _, leg in entry.legs():
        badges = leg.get("audits")
        for badge in badges if isinstance(badges, list) else ():
            if isinstance(badge, dict):
                said = badge.get("audited")
                state = said[:_LONG] if isinstance(said, str) else "not audited"
                found[f"{str(badge.get('corpus'))[:_LONG]}: {state}"] = None
    return list(found)


def _environment(entry: Entry) -> Iterator[tuple[str, str]]:
    """Libraries and machine."""
    yield from entry.row.libraries.items()
    machines = {_machine(part(leg, "compute")) for _, _, leg in entry.legs()} - {""}
    for machine in sorted(machines):
        yield "machine", machine


def _machine(values: Mapping[str, Any]) -> str:
    """A mapping in words: `device cpu, threads 2`."""
    return ", ".join(f"{key} {value}" for key, value in values.items())[:_LONG]


def _seconds(entry: Entry) -> list[tuple[str, float]]:
    """Seconds by stage, summed over the legs of the first seed; what several legs share counts once."""
    found: dict[str, dict[str, float]] = {}
    for task, leg, told in entry.legs():
        keys = part(told, "keys")
        for stage, seconds in part(told, "seconds").items():
            if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < 1e12:
                found.setdefault(stage, {})[str(keys.get(stage) or (task, leg))] = float(seconds)
    return [(stage, sum(each.values())) for stage, each in found.items()]


def _downloads(entry: Entry) -> Iterator[tuple[str, str]]:
    """Path and label of what a build may hold beside the page, if it was asked for runs."""
    for result in entry.results:
        stem, seed = f"{entry.stem}/seed-{result.content.seed}", f"seed {result.content.seed}"
        yield f"{stem}/{RESULT}", f"result file, {seed}"
        for task, legs in entry.system.first.content.tasks.items():
            for leg in legs:
                yield f"{stem}/{place('runs', task, leg)}", f"run {bare(task)} {leg}".strip() + f", {seed}"
