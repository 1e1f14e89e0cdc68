"""A page a row: the command, where its numbers come from, every language, every setting, every query."""

from collections.abc import Iterator, Sequence

from bench.core.messages import bare
from bench.core.publications import corpus_note
from bench.evaluation.compare.fairness import environment_warnings
from bench.evaluation.results import RESULT
from bench.evaluation.results.format import place
from bench.evaluation.results.passports import DATA
from leaderboard.records import Basis
from leaderboard.site import captions, perquery, text
from leaderboard.site.bibtex import bibtex
from leaderboard.site.render import Files, Page, Renderer
from leaderboard.site.rows import Entry, by_tree
from leaderboard.site.site import Site
from leaderboard.site.systems import part, stage_seconds

LARGEST_RUN = 1 << 20
"""Bytes of a file of a bundle that is copied; larger ones stay where the result says."""
_BUDGET = 40 << 10
"""Bytes of a page."""
_MOST = (120, 60, 30, 10)
"""Lines of each list of a page: the first that make it small enough."""
_LONG = 300
_DIGITS = 12  # of a hash or key, enough to identify artefacts


def files(site: Site, renderer: Renderer) -> Files:
    """Yield a page for every row, its values query by query, the query ids once a task, and bundles if asked for."""
    id_scripts: set[str] = set()
    for entries in by_tree(site).values():
        for entry in entries:
            tables = list(perquery.tables(entry))
            for table in tables:
                yield table.csv_path, table.csv()
                if table.script_path:
                    yield table.script_path, table.script()
                    if table.ids_path not in id_scripts:
                        id_scripts.add(table.ids_path)
                        yield table.ids_path, perquery.as_script(table.ids, list(table.queries))
            for most in _MOST:
                page = _page(renderer, entry, tables, most)
                if len(page[1]) <= _BUDGET:
                    break
            yield page
            for result in entry.results if site.runs else ():
                stem = f"{entry.stem}/seed-{result.content.seed}"
                yield f"{stem}/{RESULT}", result.path.read_bytes()
                # What is too large stays out, and of the user's own folders all else: their ids are nobody's business.
                for name in () if entry.board.data == "local" else result.content.files:
                    path = result.path.parent / name
                    if path.is_file() and path.stat().st_size <= LARGEST_RUN:
                        yield f"{stem}/{name}", path.read_bytes()


def _page(renderer: Renderer, entry: Entry, tables: Sequence[perquery.QueryTable], most: int) -> Page:
    """Render the page of a row.

    Args:
        renderer: fills the template, and knows which rows are verified.
        entry: the row.
        tables: its values query by query, a table for each subset of each task.
        most: lines of each list that are shown; a page that is cut says so.
    """
    board, row = entry.board, entry.row
    by_task = {task: {name: values.get(task) for name, values in row.by_measure.items()} for task in row.tasks}
    tasks = [(column, by_task[column.task]) for column in board.columns if column.task in by_task]
    computes = (part(raw, "compute").items() for _, _, _, raw in entry.subsets())
    machines = {", ".join(f"{key} {value}" for key, value in compute)[:_LONG] for compute in computes} - {""}
    doubts = [("warning", sentence) for sentence in environment_warnings(entry.system.side)]
    settings = entry.settings()
    records = renderer.site.records
    downloads = []  # of a build with runs
    for result in entry.results:
        stem, seed = f"{entry.stem}/seed-{result.content.seed}", f"seed {result.content.seed}"
        downloads.append((f"{stem}/{RESULT}", f"result file, {seed}"))
        for task, subset, _, _ in entry.subsets():
            downloads.append(
                (f"{stem}/{place('runs', task, subset)}", f"run {bare(task)} {subset}".strip() + f", {seed}")
            )
    trust = [f"Seed {result.content.seed}: {records.described(result)}" for result in entry.results]
    return renderer.page(
        "run.html",
        entry.stem,
        title=f"{row.name} · {captions.heading(board)}",
        of=board.tree,
        entry=entry,
        board=board,
        row=row,
        sentence=sentence(entry),
        bibtex=bibtex(entry, renderer.site),
        suite=f"{board.stem}.html",
        compare=f"{board.compare_stem}.html#a={text.slug(row.name)}",
        measures=sorted(row.by_measure),
        tasks=tasks[:most],
        trust=trust[:most],
        provenance=list(_provenance(entry))[:most],
        handed_in=row.verification.basis is not Basis.RUN_HERE,
        environment=[*doubts, *row.libraries.items(), *(("machine", machine) for machine in sorted(machines))][:most],
        seconds=list(stage_seconds(entry.system.first).items())[:most],
        settings=settings[:most],
        tables=tables[:most],
        downloads=downloads[:most],
        shortened=max(len(tasks), len(settings), len(tables)) > most,
        page_data=text.json_for_page(
            {  # what the script needs to find the values of each subset: the name of its queries, by its own
                "data": f"{'../' * entry.stem.count('/')}{entry.inside}data/",
                "id": entry.id,
                "subsets": {table.name: table.ids for table in tables[:most] if table.script_path},
            }
        ),
    )


def sentence(entry: Entry) -> str:
    """Return the outcome of a row: its score with the interval, its rank, and whether it is in the best group."""
    board, row = entry.board, entry.row
    if not row.verified:
        return f"{row.name} is not ranked, because some of its numbers could not be recomputed."
    if row.collapsed:
        return f"{row.name} is not ranked, because different texts have one vector."
    if row.point:
        return f"{row.name} is not ranked, because it is a point on the way of a training."
    if row.score is None:
        tasks = text.plural(len(board.columns), "task")
        return f"{row.name} has results on {len(row.tasks)} of {tasks}, so it is not ranked."
    outcome = f"{row.name} reaches {text.number(row.score)} {board.measure}"
    outcome += f", 95 % {text.bounds(row.low, row.high)}" if row.low is not None else ""
    outcome += f"; rank {text.place(row.ranks)} of {len(board.rows)}" if row.ranks else ""
    outcome += ", in the best group" if row.ranks and row.tied else ""
    return f"{outcome}."


def _passports(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield what the row's passports say of its data and weights, or that it has none."""
    if notes := [*dict.fromkeys(filter(None, (corpus_note(subset.metadata) for _, _, subset, _ in entry.subsets())))]:
        yield "not compared", "; ".join(notes)
    passports = [subset.passport for _, _, subset, _ in entry.subsets()]
    if None in passports:
        yield "passport", "none: what was read is known by the keys of stages alone"
        return
    published = [set(passport.published) for passport in passports if passport]
    as_published = [name for name in DATA if all(name in names for names in published)]
    if as_published:
        yield "as published, by sha256", ", ".join(as_published)
    for name in (*DATA, "weights"):
        digests = sorted({str(value) for passport in passports if (value := getattr(passport, name)) is not None})
        if digests:
            more = f" and {len(digests) - 1} more" if len(digests) > 1 else ""
            yield f"digest of {name}", f"{digests[0]}{more}"


def _provenance(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield what identifies the row, as name and value.

    Versions of method and suite, the release that wrote it, hashes, budget and backbone, the pretraining corpus, the
    release of the data, digests of what was read, keys of the stages of its first task, and what audits found of the
    overlap of training text and test. Parts that the format leaves free may hold anything and are shown cut.
    """
    row, board = entry.row, entry.board
    yield "method", f"{row.system.method}, version {row.system.version}"
    yield "suite", f"{board.suite}, version {board.version}"
    if versions := {str(raw["harness"]) for _, _, _, raw in entry.subsets() if raw.get("harness")}:
        yield "made by", f"retrieval-bench {', '.join(sorted(versions))}"
    yield "system", row.system.hash
    yield "results folder", entry.system.first.path.parent.parent.name  # a page's address also hashes its table
    yield "seeds", ", ".join(map(str, row.seeds))
    yield "profile", entry.system.first.content.profile
    for name in ("backbone", "budget", "budget_flops", "budget_steps"):
        if value := getattr(row.system, name):
            yield name.replace("_", " in "), f"{value:,}" if isinstance(value, int | float) else str(value)
    if row.system.corpus:
        yield "pretrained on", row.system.corpus.name
    if releases := {subset.release for _, _, subset, _ in entry.subsets()} - {""}:
        yield "release of the data", ", ".join(sorted(releases))
    if chosen := {subset.measures_by for _, _, subset, _ in entry.subsets()} - {""}:
        yield "measures chosen by", ", ".join(sorted(chosen))
    yield from _passports(entry)
    for _, _, subset, _ in list(entry.subsets())[:1]:  # later tasks have their own keys of what is not shared
        for stage, key in subset.keys.items():
            yield f"key of {stage}", key[:_DIGITS]
    audits: dict[str, None] = {}
    for _, _, _, raw in entry.subsets():
        badges = raw.get("audits")
        for badge in badges if isinstance(badges, list) else ():
            if isinstance(badge, dict):
                outcome = badge.get("audited")
                state = outcome[:_LONG] if isinstance(outcome, str) else "not audited"
                audits[f"{str(badge.get('corpus'))[:_LONG]}: {state}"] = None
    for audit in audits:
        yield "overlap of training text and test", audit
