"""Documents of tables: parquet and Hugging Face data sets where the libraries are there, what to install elsewhere."""

from __future__ import annotations

import importlib.util
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench.core.contract import Document
from bench.core.errors import UsageError
from bench.data.corpora import documents as tables
from bench.data.corpora.documents import documents
from bench.testing import fields
from tests.conftest import Told

ROWS = [
    {"id": "a", "lang": "de", "text": "Eins. Zwei.", "title": "T", "url": "u"},
    {"id": None, "lang": None, "text": "One.", "title": None, "url": "u"},
]
FOUND = [Document("a", "de", ("Eins.", "Zwei."), "T"), Document("{}:2", "en", ("One.",))]


def found(name: str) -> list[Document]:
    """What `ROWS` give, where ids begin with a name."""
    return [Document(one.id.format(name), one.language, one.sentences, one.title) for one in FOUND]


def test_parquet(tmp_path: Path, told: Told) -> None:
    """Columns by name; a malformed row is named by its number; a file that is none is refused."""
    pyarrow = pytest.importorskip("pyarrow", reason="parquet files are read by pyarrow, an optional library")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "en.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    assert list(documents(path).read()) == found("en.parquet")
    parquet.write_table(pyarrow.Table.from_pylist([{"text": "x"}, {"text": None}]), path)
    (sentence,) = told(documents(path).read())
    assert sentence.startswith(f'{path}:2: found no "text" (only nothing), expected a string under that key')
    path.write_bytes(b"PAR1 and no more")
    (sentence,) = told(documents(path).read())
    assert "found a file that cannot be read" in sentence


def test_saved_data_set(tmp_path: Path) -> None:
    """One split, or the train split of several."""
    library = pytest.importorskip("datasets", reason="data sets are read by the datasets library, an optional one")
    pyarrow = pytest.importorskip("pyarrow")
    one = library.Dataset(pyarrow.Table.from_pylist(ROWS), fingerprint="rows")
    one.save_to_disk(str(tmp_path / "one"))
    library.DatasetDict(train=one).save_to_disk(str(tmp_path / "several"))
    library.DatasetDict(test=one).save_to_disk(str(tmp_path / "test"))
    source = documents(tmp_path / "one", "en")
    assert list(source.read()) == found("one")
    assert source.files
    assert list(documents(tmp_path / "several", "en").read()) == found("several")
    with pytest.raises(UsageError, check=fields(found="the splits test", expected="train")):
        list(documents(tmp_path / "test", "en").read())


@pytest.mark.parametrize("library", ["pyarrow", "datasets"])
def test_what_to_install(tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is not there is named with the line that installs it, before anything is read."""

    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(tables, "version", absent)
    (tmp_path / "en.parquet").write_bytes(b"x")
    where = tmp_path / "en.parquet" if library == "pyarrow" else "hf:wikimedia/wikipedia:20231101.sw"
    with pytest.raises(UsageError, match=f"{library}, which is not installed; type pip install {library}$"):
        documents(where)


class Hub(ModuleType):
    """Stands in for the datasets library: what is asked of it, and rows or an error in return."""

    def __init__(self, answer: Any) -> None:
        """Answer so."""
        super().__init__("datasets")
        self.answer = answer
        self.asked: tuple[Any, ...] = ()

    def load_dataset(self, *names: Any, **options: Any) -> Any:
        """Answer as was said."""
        self.asked = (*names, options)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_data_set_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name, config and revision are taken apart; the config's end tells the language; all of it is in the key."""
    hub = Hub(ROWS)
    monkeypatch.setitem(sys.modules, "datasets", hub)
    monkeypatch.setattr(tables, "version", lambda _: "5.0")
    source = documents("hf:wikimedia/wikipedia:20231101.en@abc")
    assert not hub.asked
    assert list(source.read()) == found("wikimedia/wikipedia")
    assert hub.asked == ("wikimedia/wikipedia", "20231101.en", {"split": "train", "revision": "abc"})
    assert source.reader.endswith(":datasets-5.0:hf:wikimedia/wikipedia:20231101.en@abc:en")
    assert [one.language for one in documents("hf:x/y", "fr").read()] == ["de", "fr"]
    with pytest.raises(
        UsageError, check=fields(where="corpus hf:a b", expected="hf:NAME[:CONFIG][@REVISION], e.g. hf:wikimedia")
    ):
        documents("hf:a b")


def test_data_set_that_cannot_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Says why, and what to do where there is no network."""
    monkeypatch.setitem(sys.modules, "datasets", Hub(ConnectionError("no route\nto host")))
    monkeypatch.setattr(tables, "version", lambda _: "5.0")
    wanted = fields(where="corpus hf:x/y", found="cannot be fetched (no route)", hint="save it with save_to_disk where")
    with pytest.raises(UsageError, check=wanted):
        list(documents("hf:x/y", "en").read())


def test_nothing_is_imported_early() -> None:
    """Naming a corpus of files imports none of the optional libraries."""
    assert importlib.util.find_spec("bench.data.corpora.documents")
    assert not {"pyarrow", "datasets"} & set(vars(tables))
