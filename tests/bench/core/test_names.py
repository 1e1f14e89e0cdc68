"""Names of folders as identities: readable in every script, different where names differ, safe on every system."""

import hashlib
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.core.names import one_place, safe_name

FORBIDDEN = set('<>:"/\\|?*')
DEVICES = {"con", "prn", "aux", "nul"} | {f"{port}{number}" for port in ("com", "lpt") for number in range(10)}
"""Names, and characters, that Windows has no files of (Microsoft's "Naming files, paths, and namespaces")."""
names = st.one_of(
    st.text(max_size=90),
    st.text("ab .;-_\u0301日が\u200d", max_size=6),
    st.sampled_from(["con", "NUL.txt", "..", "-x", ".git"]),
)


def marked(readable: str, name: str) -> str:
    """The name with the digest of the whole of it, in NFC."""
    return f"{readable}-{hashlib.sha256(unicodedata.normalize('NFC', name).encode()).hexdigest()[:6]}"


@pytest.mark.parametrize(
    "name",
    [
        "scifact",
        "a-b",
        "My_Set.v2",
        "日本語",
        "中文",
        "tiếng-việt",
        "हिन्दी",
        "العربية",
        "ქართული",
        "二〇二四",
        "٣",
        "data-",
    ],
)
def test_letters_of_all_scripts_stay(name: str) -> None:
    """Letters, marks and digits, as they are spelt; in whatever form the file system has them."""
    assert safe_name(name) == name
    assert safe_name(unicodedata.normalize("NFD", name)) == unicodedata.normalize("NFC", name)


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("a b", "a-b"),
        ("a;b", "a-b"),
        ("my data: v2", "my-data-v2"),
        ("; ;", "folder"),
        ("..", "folder"),
        ("", "folder"),
        (".git", "git"),
        ("--json", "json"),
        ("data.", "data"),
        ("con", "con"),
        ("Aux.v2.x", "Aux-v2.x"),
        ("\u0301x", "x"),
        ("evil\u202egpj", "evil-gpj"),  # turns text round
        ("a\u200db", "a-b"),  # a joiner
        ("a\x1bb", "a-b"),
        ("a\ue000b", "a-b"),  # private use
        ("a\U000e0fffb", "a-b"),  # unassigned
        ("x" * 65, "x" * 57),
        ("日" * 65, "日" * 57),
        ("\U00020000" * 60, "\U00020000" * 48),  # 240 bytes
    ],
)
def test_what_is_replaced_or_cut_is_marked(name: str, readable: str) -> None:
    assert safe_name(name) == marked(readable, name)


def test_a_name_that_is_no_text() -> None:
    """Bytes of a file name that are not UTF-8 reach Python as halves of pairs."""
    assert safe_name("caf\udce9") == f"caf-{hashlib.sha256(b'caf' + bytes.fromhex('edb3a9')).hexdigest()[:6]}"


@given(names, names)
@example("a b", "a;b")
@example("a-b", "a b")
@example("x" * 65, "x" * 66)
@example("con", "con.")
@example("Data", "data")
def test_names_that_differ_stay_different(first: str, second: str) -> None:
    """Up to how a letter is spelt; the digest has 24 bits."""
    alike = unicodedata.normalize("NFC", first) == unicodedata.normalize("NFC", second)
    assert (safe_name(first) == safe_name(second)) == alike


@given(names)
def test_a_name_is_a_file_name_everywhere(name: str) -> None:
    """On Linux, macOS and Windows, also before the endings of a bundle's files; once safe, it is as it is."""
    safe = safe_name(name)
    assert 1 <= len(safe) <= 64
    assert len(f"{safe}.trec.gz.empty".encode()) <= 255
    assert safe.isprintable()
    assert not FORBIDDEN & {*safe}
    assert safe[0] not in "-."
    assert safe[-1] not in " ."
    assert safe.partition(".")[0].lower() not in DEVICES
    assert unicodedata.is_normalized("NFC", safe)
    assert safe_name(safe) == safe


def test_names_that_are_one_place_where_case_is_ignored() -> None:
    """The two are named as they are; the same name again is no other."""
    assert one_place(["beir/a", "beir/Data", "beir/a", "beir/data"]) == ("beir/Data", "beir/data")
    assert one_place(["beir/é", "beir/É"]) == ("beir/é", "beir/É")
    assert one_place(["beir/a", "beir/b", "beir/a"]) is None
