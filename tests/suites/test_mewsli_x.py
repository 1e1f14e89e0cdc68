"""The Mewsli-X suite: where it looks, what it asserts, both parts, the official average, mini data."""

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from bench.core.errors import DataError, DataFaultsError, UsageError
from bench.data import mini
from bench.data.fetching.local_files import local_files
from bench.evaluation.measures.evaluate import evaluate, macro
from bench.evaluation.measures.specs import parse
from bench.testing import fields
from bench.types import DataRequest, Item, Ranking, Subset
from suites import mewsli_x
from tests.conftest import present
from tests.suites.conftest import Checked, jsonl

GOLDEN = Path(__file__).parents[1] / "golden" / "scorers" / "mewslix"
ENTITIES = "candidate_set_entities.jsonl"

OFFICIAL_LANGUAGES = ("ar", "de", "en", "es", "fa", "ja", "pl", "ro", "ta", "tr", "uk")
"""Those of the macro average, fixed by the official scorer."""


def entity(name: str, text: str) -> dict[str, Any]:
    spans = [{"start": 0, "end": len(text)}]
    return {"entity_id": name, "description": text, "description_language": "id", "sentence_spans": spans, "title": "T"}


def article(name: str, text: str, entity: str, language: str = "ro") -> dict[str, Any]:
    """Make an article that mentions one entity by its whole text."""
    spans = [{"start": 0, "end": len(text)}]
    mention = {"example_id": name, "mention_span": {**spans[0], "text": text}, "entity_id": entity}
    return {"context": {"language": language, "text": text, "sentence_spans": spans}, "mentions": [mention]}


FILES = {
    ENTITIES: [entity("Q1", "Kota."), entity("Q2", "Sungai.")],
    "wikinews_mentions-test.jsonl": [article("t1", "Cluj", "Q1"), article("t2", "Rom", "Q2", "de")],
    "wikinews_mentions-dev.jsonl": [article("d1", "Olt", "Q2")],
}


def lay_out(folder: Path, *, without: str = "", ending: str = "") -> Path:
    """Write the tiny release's files, plain or compressed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in FILES.items():
        if name != without:
            content = jsonl(*rows).encode()
            (folder / f"{name}{ending}").write_bytes(gzip.compress(content) if ending else content)
    return folder.parent


def content(subset: Subset) -> tuple[list[Item], list[Item], list[tuple[str, str]]]:
    pairs = [(row.query, row.document) for row in present(subset.qrels).read()]
    return list(subset.corpus.items.read()), list(subset.queries.read()), pairs


def test_the_table_and_the_files() -> None:
    """Eleven languages, those of the official scorer; sums as the release's page prints them."""
    assert tuple(mewsli_x.LANGUAGES) == mewsli_x.SUITE.task_names("official") == OFFICIAL_LANGUAGES
    counts = mewsli_x.LANGUAGES.values()
    assert [sum(language[split] for language in counts) for split in ("dev", "test")] == [2_991, 14_624]
    archive, repack = mewsli_x.BENCHMARK.releases
    assert (archive.path, archive.md5, archive.unpack) == ("mewsli-x/mewsli-x_20220518_6.zip", mewsli_x.MD5, "mewsli-x")
    assert (repack.path, repack.unpack, repack.origin) == ("mewsli-x/raw.tar.gz", "", ""), "compared with the first"
    assert repack.urls == tuple(f"hf://datasets/izhx/mewsli-x@{at}/raw.tar.gz" for at in ("7e3723f", "main"))


def test_a_task(tmp_path: Path) -> None:
    """The test mentions of one language over the pool of all."""
    task = mewsli_x.SUITE.load("ro", DataRequest("official", lay_out(tmp_path / "mewsli-x"), offline=True))
    (subset,) = task.subsets
    assert (task.id, task.data, subset.corpus.id, subset.name) == ("mewsli-x/ro", "official", "mewsli-x", "")
    assert task.release == "20220518_6"
    assert (subset.language, subset.corpus.language, subset.corpus.documents) == ("ro", "", 1_003_893)
    assert dict(subset.counts) == {"queries": 672, "qrels": 672}
    assert content(subset) == (
        [Item("Q1", "Kota.", language="id"), Item("Q2", "Sungai.", language="id")],
        [Item("t1", "Cluj: { Cluj }", language="ro")],
        [("t1", "Q1")],
    )


def test_dev_is_another_task_over_the_same_pool(tmp_path: Path) -> None:
    """Its id says so, and its own counts are asserted."""
    request = DataRequest("official", lay_out(tmp_path / "mewsli-x"))
    test, dev = mewsli_x.SUITE.load("ro", request), mewsli_x.BENCHMARK.load_dev("ro", request)
    assert dev.id == "mewsli-x/ro@dev"
    assert dict(dev.subsets[0].counts) == {"queries": 145, "qrels": 145}
    assert [item.id for item in dev.subsets[0].queries.read()] == ["d1"]
    assert dev.subsets[0].corpus.items.reader == test.subsets[0].corpus.items.reader
    assert dev.subsets[0].corpus.items.files == test.subsets[0].corpus.items.files


def test_files_made_by_hand_are_all_that_is_needed(tmp_path: Path) -> None:
    """What the release's script makes counts as both archives; with one file less, neither is there."""
    root = lay_out(tmp_path / "mewsli-x")
    assert [file.state for file in local_files(mewsli_x.SUITE, (root,))] == ["present", "present"]
    (root / "mewsli-x" / "wikinews_mentions-dev.jsonl").unlink()
    assert [file.state for file in local_files(mewsli_x.SUITE, (root,))] == ["missing", "missing"]


def test_where_files_may_lie(tmp_path: Path) -> None:
    """Plain, compressed, in the repack's folder, or in its archive; a file beside goes before one in the archive."""
    roots = {name: tmp_path / name for name in ("plain", "packed", "folder", "archive")}
    lay_out(roots["plain"] / "mewsli-x")
    lay_out(roots["packed"] / "mewsli-x", ending=".gz")
    raw = lay_out(roots["folder"] / "mewsli-x" / "raw") / "raw"
    (roots["archive"] / "mewsli-x").mkdir(parents=True)
    archive = roots["archive"] / "mewsli-x" / "raw.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(raw, "raw")
    subsets = {
        name: mewsli_x.SUITE.load("ro", DataRequest("official", root)).subsets[0] for name, root in roots.items()
    }
    assert {subset.corpus.items.files[0].name for subset in subsets.values()} == {
        ENTITIES,
        f"{ENTITIES}.gz",
        archive.name,
    }
    assert all(content(subset) == content(subsets["plain"]) for subset in subsets.values())
    beside = archive.parent / ENTITIES
    beside.write_bytes((raw / ENTITIES).read_bytes())
    subset = mewsli_x.SUITE.load("ro", DataRequest("official", roots["archive"])).subsets[0]
    assert (subset.corpus.items.files, subset.queries.files) == ((beside,), (archive,))


def test_published_counts_are_asserted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: Checked) -> None:
    """Another pool or another number of mentions is refused."""
    request = DataRequest("official", lay_out(tmp_path / "mewsli-x"))
    with pytest.raises(DataError, check=fields(found="2 documents", expected="1,003,893")):
        checked(mewsli_x.SUITE.load("ro", request).subsets[0])
    monkeypatch.setattr(mewsli_x, "POOL", 2)
    with pytest.raises(DataError, check=fields(found="1 judged queries", expected="672")):
        checked(mewsli_x.SUITE.load("ro", request).subsets[0])
    monkeypatch.setitem(mewsli_x.LANGUAGES, "ro", {"test": 1})
    assert checked(mewsli_x.SUITE.load("ro", request).subsets[0])["queries"] == 1


def test_missing_files_get_a_sentence(tmp_path: Path) -> None:
    """What was expected, and both ways to come by it."""
    root = lay_out(tmp_path / "mewsli-x", without="wikinews_mentions-test.jsonl")
    with pytest.raises(UsageError) as caught:
        mewsli_x.SUITE.load("ro", DataRequest("official", root))
    folder = root / "mewsli-x"
    assert fields(
        where=f"{folder}/wikinews_mentions-test.jsonl",
        found=f"no such file, nor {folder}/raw.tar.gz",
        expected="the articles of test with their mentions and texts of Mewsli-X",
        hint="`bench data fetch mewsli-x` fetches a third party's repack",
    )(caught.value)
    assert "or run get-mewsli-x.sh of https://github.com/google-research/" in caught.value.hint
    mewsli_x.BENCHMARK.load_dev("ro", DataRequest("official", root))  # for which it is not needed
    (folder / ENTITIES).unlink()
    with pytest.raises(UsageError, match=r"expected the 1,003,893 entities .* md5 6d3f137027c7e0146c7aa0b3c21e90f4"):
        mewsli_x.BENCHMARK.load_dev("ro", DataRequest("official", root))
    # The released file, renamed, is not taken for the one that the script makes.
    root = lay_out(tmp_path / "renamed" / "mewsli-x")
    rows = [article(f"t{at}", "Cluj", "Q1") for at in range(2)]
    for row in rows:
        row["context"]["text"] = ""
    (root / "mewsli-x" / "wikinews_mentions-test.jsonl").write_text(jsonl(*rows))
    subset = mewsli_x.SUITE.load("ro", DataRequest("official", root)).subsets[0]
    with pytest.raises(DataFaultsError, match=r"test\.jsonl:1: found an article without text, .* get-mewsli-x\.sh"):
        list(subset.queries.read())


def test_our_average_is_the_official_one() -> None:
    """AP@20 of each language under the task's rules, and the mean of eleven, on the official scorer's golden case."""
    gold, predicted, expected = (
        json.loads((GOLDEN / f"{name}.json").read_text()) for name in ("gold", "pred", "expected")
    )
    values = {}
    for language in mewsli_x.LANGUAGES:
        qrels = {mention: {entity.strip(): 1} for mention, (entity,) in gold[language].items()}
        rows = predicted.get(language, {})
        # What stands twice cannot be in a ranking; of the copies the first decides, and the others hold their ranks.
        lists = {
            name: [f"{document}#{at}" if document in row[:at] else document for at, document in enumerate(row)]
            for name, row in rows.items()
        }
        run = {name: Ranking(name, row, [float(-at) for at in range(len(row))]) for name, row in lists.items()}
        values[f"mewsli-x/{language}"] = evaluate(qrels, run, [parse("AP@20")], "list").means["AP@20"]
        assert values[f"mewsli-x/{language}"] == pytest.approx(expected["per_language"][language]["mrr@20"], abs=1e-9)
    assert macro(mewsli_x.SUITE.macros[0], values) == pytest.approx(expected["macro_avg_mrr@20"], abs=1e-9)


def test_mini_data(checked: Checked) -> None:
    """Five languages over one pool, in both parts; titles are left out, mentions stand in braces."""
    names = mewsli_x.SUITE.task_names("mini")
    assert set(names) == set(mini.LANGUAGES) & set(mewsli_x.LANGUAGES)
    request = DataRequest("mini")
    dev = mewsli_x.BENCHMARK.load_dev("ja", request)
    assert (dev.id, dev.data, dev.release) == ("mini/mewsli-x/ja@dev", "mini", "")
    subsets = [*(mewsli_x.SUITE.load(name, request).subsets[0] for name in names), dev.subsets[0]]
    assert len({(subset.corpus.id, subset.corpus.items.reader) for subset in subsets}) == 1
    assert len({subset.queries.reader for subset in subsets}) == len(subsets)
    metadata = checked(subsets[-1])
    assert metadata["queries"] == metadata["judgements"] == 60
    raw, item = next(mini.entities().read()), next(subsets[0].corpus.items.read())
    assert (item.id, item.text, item.title, item.language) == (raw.id, raw.text, "", raw.language)
    mention, query = next(mini.mentions("en", "test").read()), next(subsets[2].queries.read())
    words = mention.text[mention.start : mention.end]
    assert query.id == mention.id
    assert query.text.startswith(f"{words}: ")
    assert f"{{ {words} }}" in query.text
    assert len(query.text) < len(mention.text)
