"""Folders of somebody's own: each is a task of its own name, in any script, and none takes another's place unsaid."""

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from bench.core.errors import StoreError
from bench.evaluation.results import Entry, Heading, publish, results
from tests.published import SyntheticResult

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A folder of two documents and two questions, of each of which one judged document is found, or none."""

    def call(name: str, right: int = 2, splits: tuple[str, ...] = ("test",)) -> Path:
        folder = tmp_path / name
        (folder / "qrels").mkdir(parents=True)
        words = ("apple", "pear")
        for file in ("corpus", "queries"):
            rows = [{"_id": f"{file[0]}{at}", "title": "", "text": word} for at, word in enumerate(words)]
            (folder / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        judged = [f"q{at}\tc{at if at < right else 1 - at}\t1\n" for at in range(2)]
        for split in splits:
            (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(judged))
        return folder

    return call


@pytest.fixture
def score(bench: Any) -> Callable[..., dict[str, float]]:
    """Run BM25 on folders in one store and results folder; return nDCG@10 by task, as the command prints it."""

    def call(*folders: str) -> dict[str, float]:
        completed = bench("run", "--method", "bm25", "--suite", "beir", "--task", ",".join(folders), *PLACES, "--json")
        return {row["task"]: row["measures"]["nDCG@10"] for row in json.loads(completed.stdout)["results"]}

    return call


PLACES = ("--store", "store", "--results", "results")


def scores_of_board(root: Path) -> dict[str, float]:
    """NDCG@10 by task, of all results of a folder."""
    return {
        task: subsets[""].measures["nDCG@10"]
        for result in results(root / "results")
        for task, subsets in result.content.tasks.items()
    }


@pytest.mark.parametrize(
    ("folders", "tasks"),
    [
        (("日本語", "中文"), ("beir/日本語", "beir/中文")),
        (("a b", "a;b", "a-b"), ("beir/a-b-c8687a", "beir/a-b-5719af", "beir/a-b")),
        (("हिन्दी", "tiếng-việt"), ("beir/हिन्दी", "beir/tiếng-việt")),
    ],
)
def test_each_folder_is_a_task_of_its_own(
    tmp_path: Path, make: Make, score: Callable[..., dict[str, float]], folders: tuple[str, ...], tasks: tuple[str, ...]
) -> None:
    """Run one after the other, each keeps its values: all of both questions, one of them, none."""
    for right, folder in zip((2, 1, 0), folders, strict=False):
        make(folder, right)
    printed = [score(folder) for folder in folders]
    expected = dict(zip(tasks, (1.0, 0.5, 0.0), strict=False))
    assert {name: value for row in printed for name, value in row.items()} == expected
    assert scores_of_board(tmp_path) == expected


def test_a_split_is_another_data_set(tmp_path: Path, make: Make, score: Callable[..., dict[str, float]]) -> None:
    """Named behind a colon, unless it is `test`, or the only one."""
    folder = make("data", splits=("dev", "test"))
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq0\tc1\t1\n")
    make("single", 1, ("dev",))
    expected = {"beir/data": 1.0, "beir/data-dev": 0.0, "beir/single": 0.5}
    assert score("data", "data:dev", "single:dev") == expected
    assert score("data:test") == {"beir/data": 1.0}
    assert scores_of_board(tmp_path) == expected


def test_another_folder_of_one_name(tmp_path: Path, make: Make, bench: Any) -> None:
    """Refused together, and one after the other where they are judged otherwise; the first keeps its place."""
    make("x/data")
    make("y/data", 1)
    run = ("run", "--method", "bm25", "--suite", "beir", *PLACES, "--task")
    refused = bench(*run, "x/data,y/data", status=2).stderr
    assert "found x/data and y/data, which would both be called beir/data; rename one\n" in refused
    for _ in "first", "again":
        bench(*run, "x/data")
    kept_scores = scores_of_board(tmp_path)
    refused = " ".join(bench(*run, "y/data", status=2).stderr.split())
    assert "found a result of beir/data with other judgements, expected one data set for each name" in refused
    assert scores_of_board(tmp_path) == kept_scores


def test_names_that_differ_in_case_alone(tmp_path: Path, make: Make, bench: Any) -> None:
    """Refused together, and one after the other: on some file systems their runs are one file."""
    make("x/Data")
    make("y/data", 1)
    run = ("run", "--method", "bm25", "--suite", "beir", *PLACES, "--task")
    refused = " ".join(bench(*run, "x/Data,y/data", status=2).stderr.split())
    assert "x/Data and y/data, whose names beir/Data and beir/data differ in case alone" in refused
    bench(*run, "x/Data")
    refused = " ".join(bench(*run, "y/data", status=2).stderr.split())
    assert "a result of beir/Data, whose name differs from beir/data in case alone" in refused
    assert scores_of_board(tmp_path) == {"beir/Data": 1.0}


def test_nothing_is_written_over_a_name_of_another_case(tmp_path: Path) -> None:
    """The writer itself refuses, before the first file is copied."""
    made = SyntheticResult("bm25", {"beir/Data": {"": [0.5]}}, suite="beir", data="local")
    path = made.publish(tmp_path / "scratch", tmp_path / "results")
    before = {file: file.read_bytes() for file in path.parent.rglob("*") if file.is_file()}
    content = results(tmp_path / "results")[0].whole
    named = {key: content[key] for key in ("system", "suite", "regime", "data", "profile", "seed")}
    subset = content["tasks"]["beir/Data"][""]
    files = (path.parent / "runs/beir/Data.trec.gz", path.parent / "per-query/beir/Data.json.gz")
    with pytest.raises(StoreError) as caught:
        publish(tmp_path / "results", Heading(**named, cards={}), [Entry("beir/data", "", subset, *files)], ())
    assert (caught.value.where, caught.value.found) == (str(path), "tasks beir/Data and beir/data")
    assert {file: file.read_bytes() for file in path.parent.rglob("*") if file.is_file()} == before


class Links(HTMLParser):
    """The addresses and names of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.targets += [value or "" for name, value in attrs if name in {"href", "src"}]
        self.ids |= {value or "" for name, value in attrs if name == "id"}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_board_of_folders_in_other_scripts(
    tmp_path: Path, make: Make, score: Callable[..., dict[str, float]], bench: Any
) -> None:
    """Its pages show the names, and each link of each page, decoded as a browser does, leads to a file."""
    for right, folder in enumerate(("日本語", "हिन्दी", "a b")):
        make(folder, right)
    score("日本語", "हिन्दी", "a b")
    bench("leaderboard", "build", "--results", "results", "--out", "site", "--with-runs")
    site = tmp_path / "site"
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme:
                continue
            assert target.isascii(), f"{path}: {target} is not percent-encoded"
            linked = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert linked.is_file(), f"{path}: {target}"
            if parts.fragment and "=" not in parts.fragment:  # others are read by the script
                assert unquote(parts.fragment) in pages[linked].ids, f"{path}: {target}"
    rows = [page.text for path, page in pages.items() if path.parent.name in {"runs", "beir"} and "local" in path.parts]
    assert len(rows) == 2
    assert all(name in text for name in ("日本語", "हिन्दी", "a-b-c8687a") for text in rows)
    tables = [path.read_text(encoding="utf-8") for path in (site / "local").rglob("*.csv")]
    assert sum("beir/日本語" in table for table in tables) >= 2


def test_results_of_other_scripts_are_checked_as_any(
    tmp_path: Path, make: Make, score: Callable[..., dict[str, float]], bench: Any
) -> None:
    """Every number is recomputed, and a missing file of such a name is a reason to refuse it."""
    names = ("日本語", "a..b")
    for name in names:
        make(name)
    score(*names)
    tasks = (word for name in names for word in ("--task", name))
    check = ("leaderboard", "check", "results", *tasks, "--store", "store")
    assert "passes" in bench(*check).stdout
    for name in names:
        (run,) = (tmp_path / "results").rglob(f"{name}.trec.gz")
        run.unlink()
    refused = bench(*check, status=2)
    for name in names:
        assert f"{name}.trec.gz: found no such file" in " ".join((refused.stdout + refused.stderr).split())


def test_a_folder_of_another_script_is_audited(tmp_path: Path, make: Make, bench: Any) -> None:
    make("日本語")
    corpus = tmp_path / "texts" / "ja.jsonl"
    corpus.parent.mkdir()
    corpus.write_text('{"id": "a", "sentences": ["One sentence.", "Another one."]}\n')
    audit = ("data", "audit", "--corpus", corpus.parent, "--suite", "beir", "--task", "日本語", "--json")
    assert [subset["task"] for subset in json.loads(bench(*audit).stdout)["subsets"]] == ["beir/日本語"]


def test_official_names_are_ascii(tmp_path: Path) -> None:
    """Letters of other scripts are in names of the user's own data alone, and in NFC."""
    for task, data, reason in (
        ("beir/日本語", "official", "in a result of official data, whose names are ASCII"),
        ("beir/cafe\u0301", "local", "not in NFC"),
        ("beir/a\u202eb", "local", "no letter, mark or digit"),
    ):
        made = SyntheticResult("x", {task: {"": [1.0]}}, suite="beir", data=data)
        with pytest.raises(StoreError, match=reason):
            made.publish(tmp_path / "scratch", tmp_path / "results")
