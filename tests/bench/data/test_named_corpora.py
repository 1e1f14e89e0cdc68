"""Corpora by name: what a text asks for, files in their official layouts, mixtures, and what enters the key."""

import bz2
import gzip
import json
import lzma
import math
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.config.plugin_faults import corpus_faults
from bench.core.errors import UsageError
from bench.data.corpora.named import CorpusPart, NamedCorpus, fetched_bytes, is_named, parse
from bench.data.fetching import listing
from bench.data.fetching.listing import ListedFile
from bench.plugins import load
from bench.testing import fields
from bench.types import PretrainingCorpus
from tests.conftest import WriteFile, cases

CORPORA = load().corpora_by_name
WIKIPEDIA = "b04c8d1ceb2f5cd4588862100d08de323dccfbaa"
PAGE = "<mediawiki>\n<page>\n<title>{0}</title>\n<ns>0</ns>\n<id>{1}</id>\n<text>{2}</text>\n</page>\n</mediawiki>\n"


def corpus(text: str, root: Path) -> NamedCorpus:
    return NamedCorpus.parse(text, CORPORA, root)


@pytest.mark.parametrize(("text", "wanted"), cases("corpora-asked-for"))
def test_what_a_text_asks_for(text: str, wanted: list[list[object]]) -> None:
    """Corpus, languages in the corpus's own order, and weight of every part; named mixtures are taken apart."""
    parts = [[part.corpus.name, *(part.languages[:2]), part.weight] for part in parse(text, CORPORA)]
    assert parts == wanted


@pytest.mark.parametrize(("text", "found"), cases("corpora-refused"))
def test_what_is_refused(text: str, found: str) -> None:
    """An unknown corpus or language, half of the weights, another form."""
    with pytest.raises(UsageError, check=fields(found=found)):
        parse(text, CORPORA)


def test_official_layouts(write: WriteFile, tmp_path: Path) -> None:
    """A dump, CC-100's text, shards of JSON lines under another code, and the first branch of each conversation."""
    dump = "wikipedia-dumps/swwiki-20231101-pages-articles.xml.bz2"
    write(dump, bz2.compress(PAGE.format("Paka", 12, "Paka ni mnyama.").encode()))
    write("cc100/zh-Hant.txt.xz", lzma.compress("一。\n二。\n\n三。\n".encode()))
    write("mc4-small/c4-iw.tfrecord-00000-of-01024.json.gz", gzip.compress(b'{"text": "A.", "url": "u"}\n'))
    answer = {"text": "Because\nit is.", "replies": [{"text": "Thanks."}]}
    tree = {"text": "Why?", "lang": "en", "replies": [answer, {"text": "Another."}]}
    reply = {"text": "Warum?", "lang": "de", "replies": []}
    rows = [{"message_tree_id": str(number), "prompt": prompt} for number, prompt in enumerate((tree, reply))]
    trees = "\n".join(json.dumps(row) for row in rows).encode()
    write("oasst1/2023-04-12_oasst_ready.trees.jsonl.gz", gzip.compress(trees))

    def read(text: str) -> list[tuple[str, tuple[str, ...]]]:
        return [(prompt.language, prompt.sentences) for prompt in corpus(text, tmp_path).source().read()]

    assert read("wikipedia-dumps:sw") == [("sw", ("Paka ni mnyama.",))]
    assert read("cc100:zh-Hant") == [("zh-Hant", ("一。", "二。")), ("zh-Hant", ("三。",))]
    assert read("mc4-small:he") == [("he", ("A.",))]
    assert read("oasst1:en") == [("en", ("Why?", "Because it is.", "Thanks."))]
    both = [*read("oasst1:de"), *read("oasst1:en"), *read("wikipedia-dumps:sw")]
    assert read("oasst1:en,de+wikipedia-dumps:sw") == both
    (tmp_path / dump).with_suffix("").write_bytes(bz2.decompress((tmp_path / dump).read_bytes()))
    (tmp_path / dump).unlink()
    assert read("wikipedia-dumps:sw") == [("sw", ("Paka ni mnyama.",))], "a dump that somebody decompressed"


def lay_out(root: Path, name: str, language: str, *paths: str) -> list[Path]:
    """Write down that the hub has listed these files of a corpus, as large as they are; return where they lie."""
    pattern = parse(f"{name}:{language}", CORPORA)[0].pattern(language)
    assert pattern is not None
    places = [root / name / path for path in paths]
    sizes = [path.stat().st_size if path.exists() else 1 for path in places]
    listing.remember(root, pattern, [ListedFile(*file, "") for file in zip(paths, sizes, strict=True)])
    return places


def test_files_that_the_hub_lists(tmp_path: Path) -> None:
    """Wikipedia's and FineWeb-2's parquet; the corpus knows the language, which records call by other codes."""
    rows = {"id": ["12", "13"], "title": ["Paka", "Mbwa"], "text": ["Paka ni mnyama.", "Mbwa pia."]}
    names = ("20231101.sw/train-0.parquet", "20231101.sw/train-1.parquet")
    first, second = lay_out(tmp_path, "wikipedia", "sw", *names)
    (web,) = lay_out(tmp_path, "fineweb-2", "sw", "data/swh_Latn/train/000_00000.parquet")
    for path, columns in ((first, rows), (second, rows), (web, {"text": ["Habari."], "language": ["swh"]})):
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path)
    documents = list(corpus("wikipedia:sw+fineweb-2:sw", tmp_path).source().read())
    assert [document.id for document in documents[:4]] == ["12", "13", "12", "13"]
    assert {document.language for document in documents} == {"sw"}
    assert [document.sentences for document in documents[-2:]] == [("Mbwa pia.",), ("Habari.",)]
    assert documents[0].title == "Paka"
    lay_out(tmp_path, "wikipedia", "sw", *names)
    assert corpus("wikipedia:sw", tmp_path).missing_error() is None
    second.unlink()
    with pytest.raises(UsageError, check=fields(found=f"1 of its files missing, first {second}")):
        raise corpus("wikipedia:sw", tmp_path).missing_error() or AssertionError


def test_files_that_nobody_has_listed(tmp_path: Path) -> None:
    """Files in the folder are not taken for all that there are; what is listed is what counts, and its key is known."""
    path = tmp_path / "wikipedia/20231101.te/train-00000-of-00002.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PAR1")
    requested = corpus("wikipedia:te", tmp_path)
    (file,) = requested.files()
    assert (file.release.path, file.complete) == ("wikipedia/20231101.te/train-*.parquet", False)
    before = requested.identity()
    lay_out(tmp_path, "wikipedia", "te", *(f"20231101.te/train-0000{at}-of-00002.parquet" for at in range(2)))
    files = corpus("wikipedia:te", tmp_path).files()
    assert [file.state for file in files] == ["present", "missing"]
    assert files[0].release.urls == (
        f"hf://datasets/wikimedia/wikipedia@{WIKIPEDIA}/{files[0].path.relative_to(tmp_path / 'wikipedia')}",
    )
    assert corpus("wikipedia:te", tmp_path).identity() == before


def test_a_pattern_is_pinned() -> None:
    """A branch may get other files under the key of those that were read; a second address would be another list."""
    pinned = CORPORA["wikipedia"]
    assert corpus_faults(pinned) == []
    for changed in (replace(pinned, revision="main"), replace(pinned, urls=(*pinned.urls, "https://x/{language}"))):
        (fault,) = corpus_faults(changed)
        assert "without a commit, whose files may change" in fault


def test_a_mixture_keeps_to_its_weights(write: WriteFile, tmp_path: Path) -> None:
    """A quarter and three quarters of the characters until one part ends; what one part alone has comes whole."""
    write(
        "wikipedia-dumps/enwiki-20231101-pages-articles.xml.bz2",
        "".join(f"w{'x' * 98}.\n\n" for _ in range(30)).encode(),
    )
    write("cc100/en.txt.xz", lzma.compress("".join(f"c{'x' * 48}.\n\n" for _ in range(1000)).encode()))
    write("cc100/sw.txt.xz", lzma.compress(b"Habari.\n\n" * 5))
    wiki = tmp_path / "wikipedia-dumps/enwiki-20231101-pages-articles.xml.bz2"
    wiki.write_bytes(bz2.compress(wiki.read_bytes()))
    mixed = list(corpus("wikipedia-dumps:en*0.25+cc100:en,sw*0.75", tmp_path).source().read())
    english = [document.sentences[0] for document in mixed if document.language == "en"]
    assert sum(document.startswith("w") for document in english) == 30
    characters = {kind: sum(len(document) for document in english if document.startswith(kind)) for kind in "wc"}
    assert characters["w"] / sum(characters.values()) == pytest.approx(0.25, abs=0.01)
    assert sum(document.language == "sw" for document in mixed) == 5


def test_corpora_of_a_mixture_are_told_apart(write: WriteFile, tmp_path: Path) -> None:
    """Where they share a language by weights, each document says its corpus, and the key says so; nowhere else."""
    write("cc100/en.txt.xz", lzma.compress(b"One.\n\n" * 4))
    write("cc100/sw.txt.xz", lzma.compress(b"Moja.\n\n"))
    write("oasst1/2023-04-12_oasst_ready.trees.jsonl.gz", gzip.compress(
        json.dumps({"message_tree_id": "0", "prompt": {"text": "Why?", "lang": "en", "replies": []}}).encode()
    ))  # fmt: skip

    def sources(text: str) -> list[tuple[str, str]]:
        return [(document.language, document.source) for document in corpus(text, tmp_path).source().read()]

    mixed = "oasst1:en*0.25+cc100:en,sw*0.75"
    assert set(sources(mixed)) == {("en", "oasst1"), ("en", "cc100"), ("sw", "cc100")}
    assert corpus(mixed, tmp_path).weights() == {"oasst1": 0.25, "cc100": 0.75}
    assert corpus(mixed, tmp_path).identity().keys() == {"reader", "corpora", "by"}  # type: ignore[union-attr]
    nested = corpus("contriever-mix*0.5+c4*0.5", tmp_path).weights()
    assert nested == {"wikipedia": 0.25, "cc100": 0.25, "c4": 0.5}
    for plain in ("cc100:en", "oasst1:en+cc100:en", "oasst1:en*0.5+cc100:sw*0.5", "cc100:en*0.5+cc100:en*0.5"):
        assert {source for _, source in sources(plain)} == {""}, plain
        assert corpus(plain, tmp_path).weights() == {}
        assert corpus(plain, tmp_path).identity().keys() == {"reader", "corpora"}  # type: ignore[union-attr]


def test_what_enters_the_key(tmp_path: Path) -> None:
    """Revision, languages and weights, whether the files are there or not; not their order, place or addresses."""
    first = corpus("cc100:sw,en*0.5+wikipedia:sw*0.5", tmp_path).identity()
    assert first == corpus("cc100:en,sw*0.5+wikipedia:sw*0.5", tmp_path / "elsewhere").identity()
    assert isinstance(first, dict)
    assert first["corpora"] == [
        {"name": "cc100", "revision": "2018", "languages": ["en", "sw"], "weight": 0.5},
        {"name": "wikipedia", "revision": WIKIPEDIA, "languages": ["sw"], "weight": 0.5},
    ]
    sample = corpus("mc4-small:sw", tmp_path).identity()
    assert isinstance(sample, dict)
    assert sample["corpora"][0]["first"] == 1


def test_what_is_missing_and_what_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing files are named before any work, with what fetches them; a folder of a corpus's name is that folder."""
    monkeypatch.chdir(tmp_path)
    Path("wikipedia").mkdir()
    asked_for = ("wikipedia", "wikipedia:sw", "cc100", "hf:wikimedia/wikipedia")
    assert [is_named(text, CORPORA) for text in asked_for] == [False, True, True, False]
    requested = corpus("wikipedia:sw,te", tmp_path)
    check = fields(where="corpus wikipedia:sw,te", found="2 of its files", hint="bench data fetch 'wikipedia:sw,te'")
    assert fetched_bytes(requested.parts) == (0, 2)
    with pytest.raises(UsageError, check=check):
        raise requested.missing_error() or AssertionError
    with pytest.raises(UsageError, check=fields(found="1 of its files missing", hint="bench data fetch")):
        next(requested.source().read())


MANY = PretrainingCorpus(
    "many",
    "",
    "",
    revision="1",
    languages={"en": 1000.0, "fi": 30.0, "sw": None},
    urls=("https://example.org/{language}-{shard:02}-of-{shards:02}.jsonl.gz",),
    shards={"en": 10, "fi": 3, "sw": 4},
)


def test_a_quota_takes_so_many_files_as_surely_hold_it() -> None:
    """Five bytes a token, files of 100 and of 10 bytes; all where the size is unknown, or too few bytes are there."""
    plain = CorpusPart(MANY, tuple(MANY.languages))

    def counts(quota: int | None) -> list[int]:
        return [len(replace(plain, quota=quota).files(language, {})) for language in MANY.languages]

    assert [counts(quota) for quota in (None, 1, 6, 20, 21, 10**9)] == [
        [10, 3, 4],
        [1, 1, 4],
        [1, 3, 4],
        [1, 3, 4],
        [2, 3, 4],
        [10, 3, 4],
    ]
    for quota in range(1, 250, 7):  # more of them hold fewer, and they stand in their order
        few, more = (replace(plain, quota=most).shard_numbers("en") for most in (quota, quota + 20))
        assert set(few) <= set(more)
        assert more == sorted(more)
    assert replace(plain, quota=100).shard_numbers("en") != list(range(5)), "drawn by hash, and not the first ones"
    limited = replace(plain, quota=21)
    assert limited.fetched_bytes() == (230.0, 1)
    assert (limited.times("en"), limited.times("fi")) == (5.0, 1.0)
    assert limited.identity() == plain.identity() | {"files": {"en": 2}}
    assert replace(plain, quota=10**9).identity() == plain.identity(), "all files are the corpus as it is"
    corpus = NamedCorpus("many", (limited,), ())
    assert (corpus.some_files, corpus.scale()) == (" (9 of 17 files)", {"en": 5.0})
    assert (corpus.within(None).some_files, corpus.within(None).scale()) == ("", {})


def test_one_file_of_all_languages_is_taken_whole() -> None:
    """As OASST's is."""
    part = CorpusPart(CORPORA["oasst1"], ("de", "en"), quota=1)
    assert len({release.path for language in part.languages for release in part.files(language, {})}) == 1
    assert "files" not in part.identity()


def test_missing_files_of_a_quota_are_fetched_by_it(tmp_path: Path) -> None:
    """The command takes the same quota; without one it is as it was."""
    some = corpus("c4", tmp_path).within(400_000_000)
    with pytest.raises(UsageError, check=fields(hint="type bench data fetch 'c4' --quota 400000000")):
        raise some.missing_error() or AssertionError
    assert len(some.files()) == math.ceil(400e6 * 5 / (305e9 / 1024)) == 7
    with pytest.raises(UsageError, check=fields(hint="type bench data fetch 'mc4-small:sw'")):
        raise corpus("mc4-small:sw", tmp_path).within(5).missing_error() or AssertionError
