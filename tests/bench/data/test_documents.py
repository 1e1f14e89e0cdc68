"""Pretraining documents of every kind of file, and what is said of those that cannot be read."""

import bz2
import gzip
import importlib.util
import json
import lzma
import pickle
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from bench.core.encoder_config import Document
from bench.core.errors import UsageError
from bench.core.files import unread
from bench.core.network import offline
from bench.data.corpora import documents as module
from bench.data.corpora import documents as tables
from bench.data.corpora.documents import documents
from bench.testing import fields
from tests.conftest import ReadErrors, WriteFile, cases

JSONL = """\
{"id": "a", "lang": "de", "title": "Eins", "sentences": ["Ein Satz.", " ", "Noch  einer."], "parallel_group": "g1"}
{"text": "One. Two.", "title": null}

{"id": 7, "language": "sw", "text": "", "parallel_group": 3}
"""


def test_text_and_json_lines(write: WriteFile) -> None:
    """Sentences are taken as they are, text is split; blank lines of plain text separate documents (CC-100's form)."""
    assert list(documents(write("en.jsonl", JSONL)).read()) == [
        Document("a", "de", ("Ein Satz.", "Noch einer."), "Eins", "g1"),
        Document("en.jsonl:2", "en", ("One.", "Two.")),
        Document("7", "sw", (), group="3"),
    ]
    path = write("fi.txt", "\nYksi\nkaksi. Kolme.\n \n\nNelj\u00e4\n")
    assert list(documents(path).read()) == [
        Document("fi.txt:2", "fi", ("Yksi", "kaksi.", "Kolme.")),
        Document("fi.txt:6", "fi", ("Nelj\u00e4",)),
    ]


@pytest.mark.parametrize(
    ("ending", "compress"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_compressed_files(write: WriteFile, ending: str, compress: Callable[[bytes], bytes]) -> None:
    """All are read as they are."""
    path = write(f"sw.txt{ending}", compress(b"Habari. Jambo!\n\nMbili."))
    assert [(document.language, document.sentences) for document in documents(path).read()] == [
        ("sw", ("Habari.", "Jambo!")),
        ("sw", ("Mbili.",)),
    ]


def test_wikipedia(write: WriteFile) -> None:
    """WikiExtractor's folders in both forms, with the language of the folder above; a dump's articles alone."""
    write("sw/AA/wiki_00", '<doc id="12" url="u" title="Paka">\nPaka\n\nPaka ni mnyama.\n</doc>\n')
    row = {"id": "13", "url": "u", "title": "Mbwa", "text": "Mbwa ni mnyama."}
    folder = write("sw/AB/wiki_01.bz2", bz2.compress(json.dumps(row).encode())).parent.parent.parent
    assert list(documents(folder).read()) == [
        Document("12", "sw", ("Paka ni mnyama.",), "Paka"),
        Document("13", "sw", ("Mbwa ni mnyama.",), "Mbwa"),
    ]
    page = "<page>\n<title>{}</title>\n<ns>{}</ns>\n<id>{}</id>\n<text>'''A'''\n[[b]] c.</text>\n</page>\n"
    dump = f"<mediawiki>\n<siteinfo/>\n{page.format('One', 0, 1)}{page.format('Talk:One', 1, 2)}</mediawiki>\n"
    path = write("swwiki-20240101-pages-articles.xml.bz2", bz2.compress(dump.encode()))
    assert list(documents(path).read()) == [Document("1", "sw", ("A", "b c."), "One")]


WET: str = cases("a-crawls-file")[0]


def test_crawl(write: WriteFile) -> None:
    """The record that describes the file is none; the crawl's own guess is taken where nobody knows better."""
    crawled = list(documents(write("crawl.wet", WET)).read())
    assert crawled == [Document("crawl.wet:7", "eng", ("First line", "WARC/1.0", "Second.", "Third."))]
    assert [document.language for document in documents(write("en.wet", WET)).read()] == ["en"]
    assert [document.language for document in documents(write("crawl.wet", WET), "fr").read()] == ["fr"]


@pytest.mark.parametrize(("name", "language"), cases("languages-of-files"))
def test_language_of_a_file(write: WriteFile, tmp_path: Path, name: str, language: str) -> None:
    """Its name, else a folder of two letters, else the argument; common words are no languages."""
    write(f"root/{name}", "Text.")
    assert [document.language for document in documents(tmp_path / "root", "xx").read()] == [language]


def test_unknown_language_says_how_to_give_it(write: WriteFile) -> None:
    """In records as in text."""
    expected = (
        "found a document without a language, expected an ISO 639 code; name the file by it (e.g. sw.jsonl) or put "
        'it into each record ("lang": "sw"); --set data.language=sw is for runs on a folder of your own '
        "(--task FOLDER) alone"
    )
    for name, content in (("corpus.txt", "Text."), ("corpus.jsonl", '{"text": "x"}')):
        path = write(name, content)
        with pytest.raises(UsageError) as caught:
            list(documents(path).read())
        assert str(caught.value) == f"{path}: {expected}"


@pytest.mark.parametrize("name", ["sw.csv", "sw.tsv.gz", "sw.PDF"])
def test_files_that_are_no_text(write: WriteFile, name: str) -> None:
    """Their separators and markup would be trained on as if they were sentences."""
    path = write(name, "id,text\n1,Habari ya leo.\n")
    ending = name.removeprefix("sw").removesuffix(".gz").lower()
    with pytest.raises(UsageError, check=fields(found=f"a {ending} file", hint="write its texts as JSON lines")):
        documents(path)


@pytest.mark.parametrize(("line", "complaint"), cases("document-records"))
def test_malformed_records(write: WriteFile, errors: ReadErrors, line: str, complaint: str) -> None:
    """Each is named with its line, all of a file at once, and no record is handed on after the first."""
    path = write("en.jsonl", f'{{"text": "fine"}}\n{line}\n{{"text": "fine"}}\n{{"text": 2}}\n')
    sentence, last = errors(documents(path).read())
    assert sentence.startswith(f"{path}:2: {complaint}")
    assert last == f'{path}:4: found "text": 2, expected a string'


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("en.txt", b"", "an empty file"),
        ("en.txt", b" \n\n", "no document"),
        ("en.txt", b"x\n\xff\n", "byte 0xff at place 1 of the line, which is not UTF-8"),
        ("en.txt.gz", gzip.compress(b"some text " * 99)[:-9], "a truncated gzip stream"),
        ("enwiki.xml", b"<mediawiki>\n<page>\n<title>A</title>\n", "<page> without its </page>"),
        ("en.txt", b'<doc id="1">\nx\n', "'<doc id=\"1\">' without its </doc>"),
    ],
)
def test_broken_files(write: WriteFile, errors: ReadErrors, name: str, content: bytes, complaint: str) -> None:
    """Named, with what to do."""
    path = write(name, content)
    (sentence, *_) = errors(documents(path).read())
    assert sentence.startswith(str(path))
    assert f"found {complaint}" in sentence


def test_a_document_without_end_is_refused(
    write: WriteFile, errors: ReadErrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text without blank lines would fill the memory; with them it is read."""
    monkeypatch.setattr(module, "_LONGEST", 100)
    path = write("en.txt", "A line of text.\n" * 20)
    (sentence,) = errors(documents(path).read())
    assert sentence == (
        f"{path}:1: found a document of more than 100 characters, expected its end; separate documents of plain text by"
        " blank lines, or give them as JSON lines"
    )
    assert len(list(documents(write("en.txt", "A line of text.\n\n" * 20)).read())) == 20


def test_folders(write: WriteFile, tmp_path: Path) -> None:
    """Files in the order of their names, sub-folders too, no notes or hidden ones; none at all is refused."""
    write("c/sw.txt", "Habari.")
    write("c/en.jsonl", '{"text": "Hello."}')
    for ignored in ("README.txt", ".cache/x.txt", "sums.sha256", "LICENSE.txt"):
        write(f"c/{ignored}", "not text")
    source = documents(str(tmp_path / "c"))
    assert [document.id for document in source.read()] == ["en.jsonl:1", "sw.txt:1"]
    assert [path.name for path in source.files] == ["en.jsonl", "sw.txt"]
    assert source.name == "c"
    message = "found no such file or folder, expected one with JSON lines, plain text, parq"
    with pytest.raises(UsageError, match=message):
        documents(tmp_path / "none")
    write("d/table.csv", "a,b")
    with pytest.raises(UsageError, check=fields(found="table.csv", expected="files of JSON lines")):
        documents(tmp_path / "d")


def test_source_says_what_decides_it(write: WriteFile) -> None:
    """The language is in the key (a file's name is not among its bytes); no optional library is imported."""
    content = '{"text": "Hello. You."}\n'
    first, second = documents(write("en.jsonl", content)), documents(write("de.jsonl", content))
    assert first.reader != second.reader
    assert first.reader.startswith("documents/1:sentencex-")
    assert documents(write("c.jsonl", content), "en").reader == first.reader
    assert list(pickle.loads(pickle.dumps(first)).read()) == list(first.read())  # noqa: S301 (our own bytes)
    assert importlib.util.find_spec("bench.data.corpora.documents")
    assert not {"pyarrow", "datasets"} & set(vars(tables))


ROWS = [
    {"id": "a", "lang": "de", "text": "Eins. Zwei.", "title": "T", "url": "u"},
    {"id": None, "lang": None, "text": "One.", "title": None, "url": "u"},
]
EXPECTED = [Document("a", "de", ("Eins.", "Zwei."), "T"), Document("{}:2", "en", ("One.",))]


def expected_documents(name: str) -> list[Document]:
    """What `ROWS` give, where ids begin with a name."""
    return [
        Document(document.id.format(name), document.language, document.sentences, document.title)
        for document in EXPECTED
    ]


def test_parquet(tmp_path: Path, errors: ReadErrors) -> None:
    """Columns by name; a malformed row is named by its number; a file that is none is refused."""
    pyarrow = pytest.importorskip("pyarrow", reason="parquet files are read by pyarrow, an optional library")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "en.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    assert list(documents(path).read()) == expected_documents("en.parquet")
    parquet.write_table(pyarrow.Table.from_pylist([{"text": "x"}, {"text": None}]), path)
    (sentence,) = errors(documents(path).read())
    assert sentence.startswith(f'{path}:2: found no "text" (only nothing), expected a string under that key')
    path.write_bytes(b"PAR1 and no more")
    (sentence,) = errors(documents(path).read())
    assert "found a file that cannot be read" in sentence


def test_saved_data_set(tmp_path: Path) -> None:
    """One split, or the train split of several."""
    library = pytest.importorskip("datasets", reason="data sets are read by the datasets library, an optional one")
    pyarrow = pytest.importorskip("pyarrow")
    dataset = library.Dataset(pyarrow.Table.from_pylist(ROWS), fingerprint="rows")
    dataset.save_to_disk(str(tmp_path / "one"))
    library.DatasetDict(train=dataset).save_to_disk(str(tmp_path / "several"))
    library.DatasetDict(test=dataset).save_to_disk(str(tmp_path / "test"))
    source = documents(tmp_path / "one", "en")
    assert list(source.read()) == expected_documents("one")
    assert source.files
    assert list(documents(tmp_path / "several", "en").read()) == expected_documents("several")
    with pytest.raises(UsageError, check=fields(found="the splits test", expected="train")):
        list(documents(tmp_path / "test", "en").read())


@pytest.mark.parametrize("library", ["pyarrow", "datasets"])
def test_what_to_install(tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is not there is named with the line that installs it, before anything is read."""

    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(tables, "version", absent)
    (tmp_path / "en.parquet").write_bytes(b"x")
    place = tmp_path / "en.parquet" if library == "pyarrow" else "hf:wikimedia/wikipedia:20231101.sw"
    with pytest.raises(UsageError, match=f"{library}, which is not installed; type pip install {library}$"):
        documents(place)


def test_data_set_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name, config and revision are taken apart, the config's end gives the language; the commit is in the reader."""
    commit, cached = "a" * 40, "b" * 40
    builder = Mock(hash=commit, as_dataset=Mock(return_value=ROWS))
    load = Mock(return_value=builder)
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset_builder=load))
    monkeypatch.setattr(tables, "version", lambda _: "5.0")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    reference = tmp_path / "datasets--x--y" / "refs" / "main"
    reference.parent.mkdir(parents=True)
    reference.write_text(cached)
    source = documents(f"hf:wikimedia/wikipedia:20231101.en@{commit}")
    load.assert_not_called()
    assert list(source.read()) == expected_documents("wikimedia/wikipedia")
    load.assert_called_once_with("wikimedia/wikipedia", "20231101.en", revision=commit)
    builder.as_dataset.assert_called_once_with(split="train")
    assert source.reader.endswith(f":datasets-5.0:hf:wikimedia/wikipedia:20231101.en@{commit}:en")
    with offline():
        source = documents("hf:x/y", "fr")
        assert source.reader.endswith(f":hf:x/y@{cached}:fr")
        # what the library has cached is of another commit: it is not read for this one
        with pytest.raises(UsageError, check=fields(found=f"another commit in the cache ({commit})", expected=cached)):
            list(source.read())
        builder.hash = cached
        assert [document.language for document in source.read()] == ["de", "fr"]
        check = fields(
            where="corpus hf:x/z", found="no data set x/z whole in the cache", hint="hf download x/z --repo-type d"
        )
        with pytest.raises(UsageError, check=check):
            documents("hf:x/z")
    with unread():  # a plan of another machine asks nobody
        assert documents("hf:x/z", "fr").reader.endswith(":hf:x/z@:fr")
    check = fields(where="corpus hf:a b", expected="hf:NAME[:CONFIG][@REVISION], e.g. hf:wikimedia")
    with pytest.raises(UsageError, check=check):
        documents("hf:a b")
    builder.download_and_prepare.side_effect = ConnectionError("no route\nto host")
    hint = f"hf download x/y --repo-type dataset --revision {commit} --local-dir FOLDER"
    check = fields(where=f"corpus hf:x/y@{commit}", found="cannot be reached", hint=hint)
    builder.hash = commit
    with pytest.raises(UsageError, check=check):
        list(documents(f"hf:x/y@{commit}", "en").read())
