"""How settings are read: one `--set`, one TOML file."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.config.layers import parse_set, read_toml
from bench.core.errors import ConfigError, DataError
from bench.testing import fields
from tests.conftest import cases


@pytest.mark.parametrize(("text", "path", "value"), cases("sets"))
def test_set_reads_toml_or_text(text: str, path: list[str], value: object) -> None:
    """TOML where it is TOML, text where it is not, nothing where nothing stands."""
    found = parse_set(text)
    assert found == (tuple(path), value)
    assert type(found[1]) is type(value)


@pytest.mark.parametrize("text", ["search.k", "=5", ".k=5", "search.=5", "", "a..b=1"])
def test_set_without_key_or_equals_is_refused(text: str) -> None:
    """With an example of what to type."""
    with pytest.raises(ConfigError, check=fields(where="--set", expected="KEY=VALUE", hint="search.k=50")):
        parse_set(text)


@given(st.text())
def test_set_never_breaks_on_a_value(value: str) -> None:
    """Whatever stands behind the equals sign, the key is the key, and the value is one that a config can judge."""
    path, found = parse_set(f"a.b={value}")
    assert path == ("a", "b")
    assert found is None or isinstance(found, str | bool | int | float | list | dict)


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"[method]\nk1 = \n", ":2: found a fault: Invalid value, expected TOML"),
        (b"a = 1\na = 2\n", ":2: found a fault: Cannot overwrite a value, expected TOML"),
        (b"a = 1\nb = \xff\n", ":2: found byte 0xff, expected UTF-8 text"),
    ],
)
def test_a_file_that_is_not_toml_is_told(tmp_path: Path, content: bytes, where: str) -> None:
    """File and line, what was found, what was expected."""
    file = tmp_path / "run.toml"
    file.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_toml(file)
    assert str(error.value).startswith(f"{file}{where}")


NESTED = "more than 32 values within each other"
DIGITS = "a number of hundreds of digits or more"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("9" * 5000, DIGITS),
        ("0x" + "f" * 5000, DIGITS),
        ("[" * 2000, NESTED),
        ("[" * 50 + "]" * 50, NESTED),
        ("{a = " * 300 + "1" + "}" * 300, NESTED),
    ],
)
def test_values_that_no_setting_has(tmp_path: Path, value: str, found: str) -> None:
    """Too many digits or levels to be parsed, printed or compared: refused where they are read, in few words."""
    with pytest.raises(ConfigError, check=fields(where="--set", found=found)) as typed:
        parse_set(f"search.k={value}")
    file = tmp_path / "run.toml"
    for text in (f"k = {value}\n", f"[search]\nk = {value}\n"):
        file.write_text(text)
        with pytest.raises(DataError, check=fields(where="run.toml", found=found)):
            read_toml(file)
    assert len(str(typed.value)) < 400


def test_keys_and_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A table a part, each within the one before; a missing file and a folder."""
    file = tmp_path / "run.toml"
    file.write_text("a." * 3000 + "b = 1\n")
    with pytest.raises(DataError, check=fields(found=NESTED)):
        read_toml(file)
    with pytest.raises(DataError, check=fields(found="No such file", expected="a TOML file")):
        read_toml(tmp_path / "none.toml")
    with pytest.raises(DataError, check=fields(found="Is a directory")):
        read_toml(tmp_path)
