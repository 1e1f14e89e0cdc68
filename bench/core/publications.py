"""What a suite says of published data and numbers: its official files, what papers printed, what is not comparable."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Unit = Literal["percent", "fraction", "count"]
_LONGEST_NOTE = 200


@dataclass(frozen=True)
class Release:
    """One file of an official release, and where it goes."""

    path: str  # its place under the folder of data, with forward slashes, e.g. `mrtydi/mrtydi-v1.1-swahili.tar.gz`
    # where it can be had, the official place first, then mirrors; a file of the Hugging Face hub as
    # `hf://datasets/OWNER/NAME@REVISION/PATH`, so that mirrors, tokens and its checksums hold. Empty where no source is
    # left or the licence forbids fetching, and then `instructions` says what to do
    urls: tuple[str, ...]
    licence: str
    size: int | None = None  # bytes, None where it was not published
    sha256: str = ""  # hexadecimal, empty where it is not known
    md5: str = ""  # hexadecimal, empty where it is not known
    # the tasks that need it, without the suite's prefix; empty for all of them. A name that is no task's, such as
    # `pairs`, is that of a group which is fetched only where it is named
    tasks: tuple[str, ...] = ()
    # folder under the folder of data into which the archive is unpacked whole; empty where the file is read as it is
    unpack: str = ""
    instructions: str = ""  # what a person does to get it, in sentences; empty where it can be fetched
    origin: str = ""  # where size and checksums are from, in a phrase; empty where nobody published any


@dataclass(frozen=True)
class Reported:
    """One number that a paper printed."""

    paper: str  # e.g. `MSM`
    table: str  # e.g. `Table 3`
    setting: str  # in the paper's words
    model: str  # the row, in the paper's words
    suite: str  # canonical name, empty where the harness has no such suite
    dataset: str  # the column, in the paper's words
    key: str  # language or data set, normalised; `avg` for an average
    measure: str  # canonical measure where the harness has it, else the paper's words
    printed: str  # exactly as in the paper; `-` for a dash, `fail` for a failed training, empty where it is illegible
    value: float | None  # the number in `unit`; None where there is none
    unit: Unit  # of `value`
    note: str = ""  # what was noted when it was copied
    # canonical id of our task that it is compared with; empty for averages and where we have no such task
    task: str = ""
    average: str = ""  # name of the suite's average that has the same members; empty where there is none
    error: str = ""  # id of the known error that it is part of, e.g. `CCP-2`; empty where none is known
    wrong: str = ""  # what is wrong, in sentences; empty where no error is known
    corrected: float | None = None  # the right value in `unit` where it follows from other numbers; None otherwise


def mark(proxy_for: str) -> str:
    """Return the note that numbers are those of a substitute for a benchmark; empty for a benchmark itself."""
    return f"substitute for {proxy_for}: not comparable with published numbers" if proxy_for else ""


def tabled(suite: str, *parts: str, data: str, proxy_for: str, note: str = "") -> str:
    """Return the heading of a table of results: its subject, the kind of data (unless a note says it) and notes.

    Folders of a user's own are no part of the suite in whose layout they are. Empty `data` is not named.
    """
    kind = "" if data in ("", "local") or (proxy_for and data == "official") else f"{data} data"
    subject = f"own data in {suite} layout" if data == "local" else suite
    return " · ".join(filter(None, (subject, *parts, kind, mark(proxy_for), note)))


def tokens_note(measures: Iterable[str], libraries: Mapping[str, str]) -> str:
    """Return the note on values of R@Nkt whose tokens are not NLTK's with its model; empty where there are none."""
    tokeniser = libraries.get("tokeniser", "punkt")
    if "punkt" in tokeniser or not any(measure.endswith("kt") for measure in measures):
        return ""
    return f"R@Nkt without NLTK's punkt_tab ({tokeniser}): not the official tokens"


def corpus_note(metadata: Mapping[str, Any]) -> str:
    """Return the note on passages that were compared with nothing, from what stages say of themselves; else empty.

    What stages say may be anybody's: a text of another form or length is none.
    """
    validated = metadata.get("validate")
    note = validated.get("unverified") if isinstance(validated, Mapping) else None
    return note if isinstance(note, str) and len(note) <= _LONGEST_NOTE else ""


def marked(heading: str, proxy_for: str) -> str:
    """Return the heading of a table with the note of `mark`, where there is one."""
    return " · ".join(filter(None, (heading, mark(proxy_for))))
