"""Use a copy of the repository to which something was added, and print what comes of it as JSON.

Run by `tests/bench/test_additions.py` in a process of its own, where the copy comes first on the path.

    python extended_tree.py FOLDER DATA CORPUS
"""

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import bench
from bench.core.files import read_sealed
from bench.evaluation.measures.builtin import BUILTIN
from bench.evaluation.measures.evaluate import evaluate
from bench.evaluation.measures.specs import parse
from bench.evaluation.results import results
from bench.pipeline.plan import Plan, plan
from bench.pipeline.run import run
from bench.plugins import load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.types import Ranking, Tie
from leaderboard import build
from leaderboard.pages import index, suites
from leaderboard.site.boards import boards
from leaderboard.site.site import Catalogue, Site
from leaderboard.site.verify import errors

SETS = (
    "prepare.vocabulary=512",
    "prepare.max_documents=40",
    "budget.tokens=2000",
    "compute.threads=1",
    "data.language=en",
)
STEM = "suites/made/unsupervised"


def described(planned: Plan) -> dict[str, Any]:
    """Return hashes of systems, keys of all stages, and the stages of the first system's subset."""
    return {
        "hashes": [cell.identity.hash for cell in planned.cells],
        "keys": [step.stage.key for step in planned.steps],
        "names": [stage.name for stage in planned.subsets[0][0].stages],
    }


def stage(folder: Path, data: Path, corpus: Path) -> dict[str, Any]:
    """Plan without the new stage, and with two values of its field; run one of them, then plan again."""
    request = bench.Request(
        ("crop",),
        ("beir",),
        tasks=(str(data),),
        corpus=str(corpus),
        backbone="scratch:2x16",
        device="cpu",
        store=folder / "store",
        results=folder / "stage-results",
        sets=SETS,
    )
    plugins, store = load(), Store(request.store)
    requests = {text: replace(request, sets=(*SETS, text)) for text in ("shorten.layers=1", "shorten.layers=2")}
    plans = {text: described(plan(variant, plugins, store)) for text, variant in {"": request, **requests}.items()}
    outcome = run(requests["shorten.layers=1"], plugins, store, NullListener())
    shorten = outcome.plan.subsets[0][0].by_name["shorten"]
    content = read_sealed(outcome.published[0].path)
    encoded = outcome.plan.subsets[0][0].by_name["encode"].inputs["encoder"]
    after = plan(requests["shorten.layers=1"], plugins, store)
    ran = {
        "rows": [row["system"] for row in outcome.rows],
        "metadata": dict(present.metadata) if (present := store.open(shorten)) else None,
        "layers": json.loads((store.folder(encoded) / "config.json").read_text())["num_hidden_layers"],
        "stale": [step.stage.name for step in after.steps if step.runs],
        "settings": next(iter(content["tasks"].values()))[""]["settings"],
    }
    return {"plans": plans, "run": ran}


def measure() -> dict[str, Any]:
    """Score one ranking of four documents by the new measure, under both rules for ties."""
    qrels = {"q": {"a": 1, "b": 2, "c": 1, "x": 0}}
    ranking = {"q": Ranking("q", ("a", "x", "b", "c"), (4.0, 3.0, 2.0, 1.0))}
    ties: tuple[Tie, ...] = ("trec", "list")
    values: dict[str, Any] = {tie: evaluate(qrels, ranking, [parse("rprec")], tie).means for tie in ties}
    return {**values, "listed": "Rprec" in BUILTIN}


def column(folder: Path) -> dict[str, Any]:
    """Build the pages of a board and return each view of the new column."""
    build.FAMILIES = (index.files, suites.files)
    checked = tuple(results(folder / "results"))
    pages = build.files(Site(checked, tuple(boards(checked)), Catalogue()))
    views = {kind: pages[f"{STEM}.{kind}"].decode() for kind in ("html", "csv", "json", "md", "tex")}
    (line,) = csv.DictReader(views["csv"].splitlines())
    return {
        **views,
        "csv": {"count": line["count"]},
        "json": json.loads(views["json"])["rows"][0]["count"],
        "errors": list(errors(pages)),
    }


if __name__ == "__main__":
    place, data, texts = map(Path, sys.argv[1:])
    answer = {"bench": bench.__file__, **stage(place, data, texts), "measure": measure(), "column": column(place)}
    sys.stdout.write(json.dumps(answer))
