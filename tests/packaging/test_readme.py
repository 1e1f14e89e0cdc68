"""What README and guide say is so: their commands exist, examples print what they show, tables are complete."""

import html
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bench.cli import COMMANDS, bench, main

ROOT = Path(__file__).parents[2]
SKILL = ROOT / "bench" / "cli" / "skill.md"
GUIDE = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md")), SKILL]
FINDINGS = [ROOT / "docs" / "findings.md", ROOT / "docs" / "findings-appendix.md", ROOT / "experiments" / "README.md"]
DOCUMENTS = [*GUIDE, *FINDINGS, ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md"]
README = "\n".join(path.read_text(encoding="utf-8") for path in GUIDE)
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def typed() -> Iterator[str]:
    for kind, text in BLOCKS:
        if kind in ("sh", "console"):
            for line in text.replace("\\\n", "").splitlines():
                command = line.removeprefix("$ ")
                if command.startswith("bench "):
                    yield command


def shown(document: Path) -> list[tuple[str, str]]:
    """Commands with the output that a document shows for them."""
    text = document.read_text(encoding="utf-8")
    sessions = "".join(re.findall(r"^```console\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL))
    return [
        (session.partition("\n")[0], session.partition("\n")[2])
        for session in re.split(r"^\$ ", sessions, flags=re.MULTILINE)[1:]
    ]


@pytest.mark.parametrize("command", sorted(set(typed())))
def test_every_command_can_be_parsed(command: str) -> None:
    """Commands and options are those of the command line."""
    _, name, *arguments = shlex.split(command, comments=True)
    assert name in COMMANDS
    parsed = bench.get_command(click.Context(bench), name)
    assert parsed is not None
    parsed.make_context(name, arguments, resilient_parsing=True)


def test_the_readme_is_short_and_has_examples() -> None:
    """It was read as it is written, in five minutes; the changelog has a paragraph on the version of pyproject.toml."""
    assert len(set(typed())) >= 10
    assert sum(len(shown(document)) for document in GUIDE) >= 4
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
    assert f"\n## [{PROJECT['version']}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "document", [document for document in GUIDE if shown(document)], ids=lambda document: document.stem
)
def test_examples_print_what_the_document_shows(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run in the document's order in one folder; `…` is anything on a line."""
    shutil.copytree(ROOT / "tests" / "fixtures" / "tiny-beir", tmp_path / "tests" / "fixtures" / "tiny-beir")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_DATA", raising=False)
    for command, expected in shown(document):
        name, *arguments = shlex.split(command)
        assert name == "bench"
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit):
            main(arguments)
        printed = [line.rstrip() for line in (out.getvalue() + err.getvalue()).splitlines()]
        patterns = [re.escape(line.rstrip()).replace("…", ".+") for line in expected.splitlines()]
        assert len(printed) == len(patterns), (command, printed)
        for line, pattern in zip(printed, patterns, strict=True):
            assert re.fullmatch(pattern, line), (command, line)


def test_the_demo_is_what_the_readme_says() -> None:
    """FULL=1 is the README's commands behind BM25's row; in short two things are cut, in the machine's precision."""
    full = README.partition("`make demo FULL=1`")[2].partition("```sh\n")[2].partition("\n```")[0]
    bm25, places = "bench run --method bm25 --suite mrtydi", " --store store --results results"

    def demo(*more: str) -> list[str]:
        variables = {name: value for name, value in os.environ.items() if name not in ("FULL", "PRECISION")}
        words = ["make", "--dry-run", "demo", *more]
        printed = subprocess.run(words, cwd=ROOT, env=variables, capture_output=True, text=True, check=True).stdout
        lines = (re.sub(" +", " ", line).partition("/bin/")[2].removesuffix(places) for line in printed.splitlines())
        return [line for line in lines if line.startswith("bench ")]

    run, build = full.splitlines()
    assert demo("FULL=1") == [bm25, run, build]
    cuts = " --set budget.tokens=200000 --set prepare.max_documents=375 --set compute.threads=1 --workers 2"
    cuts += " --set train.precision="
    assert demo() == [bm25, f"{run}{cuts}auto", build]
    assert demo("PRECISION=float32") == [bm25, f"{run}{cuts}float32", build]


def test_the_pictures_are_small_and_show_what_the_readme_prints() -> None:
    """The terminal's lines are the command and the output of the demo's block; both pictures are linked."""
    picture = html.unescape((ROOT / "docs" / "pictures" / "run.svg").read_text(encoding="utf-8")).replace("\xa0", " ")
    lines = [line.strip() for line in re.findall(r"<text [^>]*>(.*?)</text>", picture)]
    (block,) = [text for kind, text in BLOCKS if kind == "text" and "msm@init" in text]
    expected = ["$ bench run --method bm25,msm --suite mrtydi", *block.splitlines()]
    assert [line for line in lines if line not in ("", "retrieval-bench")] == expected
    for name in re.findall(r"\]\((docs/pictures/[^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert (ROOT / name).stat().st_size < 300_000


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of the API prints the number of the first table."""
    (example,) = [text for kind, text in BLOCKS if kind == "python" and "bench.run(" in text]
    monkeypatch.chdir(tmp_path)
    text = example.replace("tests/fixtures/tiny-beir", str(ROOT / "tests" / "fixtures" / "tiny-beir"))
    with redirect_stdout(StringIO()) as out:
        exec(text, {})  # noqa: S102 (the page's own text)
    table = re.search(r"^bm25 +tiny-beir +12 +([\d.]+)", README, flags=re.MULTILINE)
    assert table is not None
    assert f"{100 * float(out.getvalue()):.1f}" == table[1]


def test_extras_variables_and_targets_are_complete() -> None:
    """The table of extras is that of pyproject.toml; whatever BENCH_ variable the harness reads has a row."""
    rows = re.findall(r"^\| `(\w+)` \| ", README.partition("| extra |")[2].partition("\n\n")[0], flags=re.MULTILINE)
    assert rows == list(PROJECT["optional-dependencies"])
    read = set()
    for path in (ROOT / "bench").rglob("*.py"):
        read |= set(re.findall(r"[\"'](BENCH_[A-Z]+)[\"']", path.read_text(encoding="utf-8")))
    documented = set(re.findall(r"^\| `(BENCH_[A-Z]+)`", README, flags=re.MULTILINE))
    assert documented == read
    # Each `make WORD` of README and CONTRIBUTING is a target.
    papers = README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    called = re.findall(r"^make ([a-z -]+?)(?: *#.*)?$|`make ([a-z-]+)[ `]", papers, flags=re.MULTILINE)
    names = {name for pair in called for name in " ".join(pair).split()}
    assert {"demo", "test", "lint", "types", "layers", "test-slow"} <= names
    assert names <= targets


def test_links_and_names_of_files_lead_somewhere() -> None:
    """Relative links name files of the repository and headings of theirs, and nothing is left to be filled in."""
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        assert "TODO" not in text
        for link, heading in re.findall(r"\]\(([^)#:]+)(?:#([^)]+))?\)", text):
            target = document.parent / link
            assert target.exists(), (document.name, link)
            heads = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE) if heading else []
            slugs = [re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads]
            assert not heading or heading in slugs, (document.name, link, heading)
    # A module or test that moved takes its mention along.
    texts = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS[:-1])
    mentioned = set(re.findall(r"\b(?:bench|methods|suites|leaderboard|tests|docs)/[\w./-]+\.(?:py|md|json)\b", texts))
    assert mentioned
    assert [name for name in sorted(mentioned) if not (ROOT / name).is_file()] == []


def test_the_constraints_pin_what_we_ask_for() -> None:
    """Every requirement of the base and of the extras that CI installs has one exact version."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"==[^*+]+", str(pin.specifier)) for pin in pins)
    versions = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}
    assert len(versions) == len(pins)
    extras = PROJECT["optional-dependencies"]
    installed = re.findall(r"EXTRAS:-([\w,]+)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))[0].split(",")
    requirements = [Requirement(text) for name in installed for text in [*PROJECT["dependencies"], *extras[name]]]
    unmet = [
        str(requirement)
        for requirement in requirements
        if not requirement.specifier.contains(versions.get(canonicalize_name(requirement.name), "0"))
    ]
    assert unmet == []

    # Each entry of the lock has that version and a sha256; whatever make installs by default is in it.
    def pinned(lines: Iterable[str]) -> dict[str, str]:
        requirements = [Requirement(line) for line in lines if line and not line.startswith("#")]
        return {canonicalize_name(requirement.name): str(requirement.specifier) for requirement in requirements}

    entries = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    locked = pinned(entry.partition(" --hash=")[0] for entry in entries)
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}( |$)", entry) for entry in entries)
    pins_by_name = pinned((ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines())
    assert {name: version for name, version in locked.items() if pins_by_name.get(name, version) != version} == {}
    default = re.findall(r"^EXTRAS +\?= ([\w,]+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[0]
    requirements = [
        Requirement(text) for name in default.split(",") for text in [*PROJECT["dependencies"], *extras[name]]
    ]
    requirements += map(Requirement, extras["dense"])  # which cpu brings
    assert {canonicalize_name(requirement.name) for requirement in requirements} - locked.keys() == {
        "torch",
        "retrieval-bench",
    }


def test_the_skill_is_printed_as_it_is_in_the_package() -> None:
    """With the head that agents look for."""
    printed = CliRunner().invoke(bench, ["skill"], catch_exceptions=False).stdout
    assert printed == SKILL.read_text(encoding="utf-8")
    assert re.match(r"---\nname: retrieval-bench\ndescription: .{50,300}\n---\n", printed)
