"""A file of `bench run`: what its keys become, what is written for options that are typed, what is refused."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.cli.options import plan_options
from bench.cli.output import Reporter, progress_options
from bench.cli.run import command as run_command
from bench.cli.run_file import Save, is_free, options_by_key, read_run_file, takes_file
from bench.config.request import Request
from bench.core.errors import DataError, StoreError, UsageError
from bench.plugins import load
from bench.testing import fields

SEEN: list[tuple[Request, Save | None]] = []
BM25 = 'method = "bm25"\nsuite = "beir"\n'


@click.command()
@plan_options
@progress_options
@takes_file
def capture(request: Request, save: Save | None, progress: Reporter) -> None:
    """Keep what `bench run` would be called with; `quiet` and `log` in the request's place of unused fields."""
    SEEN.append((replace(request, devices=f"{progress.quiet} {progress.log}"), save))


def typed(*words: str | Path) -> tuple[Request, Save | None]:
    """Return what a command is called with."""
    capture.main([*map(str, words)], standalone_mode=False)
    return SEEN.pop()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_DATA", str(tmp_path / "data"))
    return tmp_path


def test_every_option_of_the_command_is_a_key() -> None:
    """But for the form of the answer, and what makes a file; those that change no row are known."""
    options = {max(option.opts, key=len) for option in run_command.params if isinstance(option, click.Option)}
    assert {f"--{key}" for key in options_by_key()} == options - {"--json", "--save"}
    free = {key for key, option in options_by_key().items() if is_free(option)}
    assert free == {
        *("data-dir", "store", "results", "executor", "workers", "device", "shard-workers"),
        *("offline", "again", "quiet", "log"),
    }


def test_keys_are_what_is_typed(folder: Path) -> None:
    """Each kind of value: names alone and listed, seeds, a choice, a number, a flag, settings as a table, paths."""
    (folder / "exp").mkdir()
    (folder / "exp" / "a.toml").write_text("""
        method = ["bm25", "crop"]
        suite = "beir,mrtydi"
        task = ["../my corpus", "mrtydi/sw", "/there"]
        seed = [3, 1]
        readout = "both"
        processes = 2
        again = true
        quiet = true
        log = "logs/a.log"
        config = "../c.toml"
        results = "out"
        corpus = "$BENCH_DATA/texts"
        backbone = "scratch:2x128"
        [set]
        search.k = 5
        "method.analyzer" = "words"
        method.model = "./m"
        encode.flag = true
        x.text = "5"
        x.list = [1, 2]
    """)
    request, save = typed("exp/a.toml")
    assert save is None
    assert request == replace(
        Request(
            methods=("bm25", "crop"),
            suites=("beir", "mrtydi"),
            tasks=("./my corpus", "mrtydi/sw", "/there"),
            seeds=(3, 1),
            again=True,
            file=Path("c.toml"),
            results=Path("exp/out"),
            corpus=str(folder / "data" / "texts"),
            backbone="scratch:2x128",
            sets=(
                *("search.k=5", "method.analyzer=words", "method.model=./exp/m", "encode.flag=true"),
                *('x.text="5"', "x.list=[1, 2]", "encode.readout=both", "compute.processes=2"),
            ),
        ),
        devices="True exp/logs/a.log",
    )


def test_variants_take_the_place_of_options_and_add_settings(folder: Path) -> None:
    """The request of each is what would be typed for it."""
    text = (
        BM25 + 'label = "a"\nset = ["search.k=5"]\n[variants.plain]\n[variants."b 2"]\nlabel = "b"\nset.method.k1 = 2'
    )
    (folder / "a.toml").write_text(f"{text}\nreadout = 'encoder'\nmethod = ['crop']")
    request, _ = typed("a.toml")
    plain, other = request.each().values()
    assert plain == replace(request, variants=())
    sets = ("search.k=5", "method.k1=2", "encode.readout=encoder")
    assert other == replace(plain, label="b", methods=("crop",), sets=sets)
    assert [*request.each()] == ["a.toml, variant plain", "a.toml, variant b 2"]


def test_what_makes_no_other_row_may_be_typed_next_to_a_file(folder: Path) -> None:
    """It holds over the file's; what the file says anyway may be typed again."""
    (folder / "a.toml").write_text(BM25 + 'seed = [0, 1]\nworkers = 3\nconfig = "c.toml"\nset = ["a.b=1"]')
    words = ("a.toml", "--workers", "2", "--seed", "0,1", "--config", folder / "c.toml", "--set", "a.b=1", "--quiet")
    request, _ = typed(*words)
    assert (request.workers, request.seeds, request.sets) == (2, (0, 1), ("a.b=1",))
    assert request.devices == "True None"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("--seed", "3"), "--seed 3 next to it, and seed = [0, 1] in it"),
        (("--method", "bm25,crop"), '--method bm25 crop next to it, and method = ["bm25"] in it'),
        (("--label", "x"), "--label x next to it, and no label in it"),
        (("--set", "a.b=2"), '--set a.b=2 next to it, and set = ["a.b=1"] in it'),
        (("--profile", "small"), "--profile small next to it, and no profile in it"),
        (("--processes", "2"), "--processes 2 next to it, and no processes in it"),
    ],
)
def test_what_makes_other_rows_may_not(folder: Path, words: tuple[str, ...], found: str) -> None:
    """Whether the file says otherwise or nothing."""
    (folder / "a.toml").write_text(BM25 + 'seed = [0, 1]\nset = ["a.b=1"]')
    with pytest.raises(UsageError, check=fields(where="a.toml", found=found, hint=f"leave {words[0]} out")):
        typed("a.toml", *words)


@pytest.mark.parametrize(
    ("text", "expectation"),
    [
        ("methd = 'bm25'", {"found": "key methd", "expected": "method, suite,", "hint": "did you mean method"}),
        ("data_dir = 'x'", {"found": "key data_dir", "hint": "data-dir"}),
        ("[variants.a]\nsed = 1", {"found": "key variants.a.sed", "hint": "seed"}),
        ("json = true", {"found": "key json"}),
        ("method = []", {"found": "method = []", "hint": "leave the key out"}),
        ("label = ''", {"found": 'label = ""', "hint": "leave the key out"}),
        ("set = {}", {"found": "set = {}"}),
        ("method = ['a', '']", {"found": 'method = ["a", ""]', "expected": "without empty ones"}),
        ("seed = [0, 1, 0]", {"found": "0 twice in seed", "expected": "each once"}),
        ("method = 'bm25, crop,bm25'", {"found": "bm25 twice in method"}),
        ("seed = '0-2,1'", {"found": "1 twice in seed"}),
        ("seed = 'x'", {"found": 'seed = "x"', "expected": "whole numbers from 0 up"}),
        ("seed = ['0']", {"found": 'seed = ["0"]', "expected": "a whole number ≥ 0"}),
        ("seed = -1", {"found": "seed = -1"}),
        ("seed = true", {"found": "seed = true"}),
        ("method = 3", {"found": "method = 3", "expected": "text"}),
        ("method = [['bm25']]", {"found": 'method = [["bm25"]]'}),
        ("workers = 0", {"found": "workers = 0", "expected": "a whole number ≥ 1"}),
        ("workers = 1.0", {"found": "workers = 1.0"}),
        ("again = 1", {"found": "again = 1", "expected": "true or false"}),
        ("readout = 'mean'", {"found": 'readout = "mean"', "expected": "one of encoder, protocol, both"}),
        ("label = 2024-01-31", {"found": "label = 2024-01-31", "expected": "text"}),
        ("store = ['a']", {"found": 'store = ["a"]', "expected": "text"}),
        ("set = 'a.b=1'", {"found": 'set = "a.b=1"', "expected": "a table of settings"}),
        ("set = ['a.b']", {"found": 'set = ["a.b"]', "expected": '"KEY=VALUE"'}),
        ("set.a.b = 2024-01-31", {"found": "set.a.b = 2024-01-31"}),
        ("set.'a=b' = 1", {"found": "set.a=b = 1"}),
        ("set.a = [{b = 1}]", {"found": "set.a = "}),
        ("variants = ['a']", {"found": 'variants = ["a"]', "expected": "[variants.NAME]"}),
        ("variants = {}", {"found": "variants = ", "expected": "[variants.NAME]"}),
        ("variants.a = 1", {"found": "variants.a = 1", "expected": "[variants.a]"}),
        ("[variants.a]\ndevice = 'cpu'", {"found": "variants.a.device", "hint": "write device above"}),
        ("\nmethod = bm25", {"line": 2, "expected": "TOML"}),
        ("method = 'a'\nmethod = 'b'\n", {"line": 2, "expected": "TOML"}),
        ("# " + "x" * 1_000_000, {"found": "more than 1,000,000 bytes"}),
    ],
    ids=lambda part: part[:20] if isinstance(part, str) else "",
)
def test_what_a_file_may_not_say(folder: Path, text: str, expectation: dict[str, Any]) -> None:
    """Each fault by the file's name, with what was found and expected."""
    (folder / "a.toml").write_text(text)
    with pytest.raises(DataError, check=fields(where="a.toml", exit_code=2, **expectation)):
        read_run_file(Path("a.toml"))


def test_a_file_that_is_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor a folder, nor a path below a folder that nobody has named; a method is told apart."""
    with pytest.raises(DataError, check=fields(where="none.toml", found="No such file")):
        typed("none.toml")
    (folder / "x.toml").mkdir()
    with pytest.raises(DataError, check=fields(where="x.toml", found="directory")):
        typed("x.toml")
    with pytest.raises(UsageError, check=fields(found="bm25", expected="--method bm25")):
        typed("bm25")
    monkeypatch.delenv("BENCH_DATA")
    (folder / "a.toml").write_text('corpus = "$BENCH_DATA/x"')
    with pytest.raises(DataError, check=fields(where="a.toml", found="$BENCH_DATA/x", hint="export BENCH_DATA")):
        typed("a.toml")


# Without what is a path as a task: `.`, `~`, `:`, a split of the current folder, and `c` and `d`, which are folders
# there and come back as `./c` (the test below has such names).
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=",/:."), min_size=1, max_size=50).filter(
    lambda text: text.strip() not in {"", "c", "d"} and not text.startswith(("$", "~"))
)
PATHS = st.sampled_from(["./a", "../b/c", "/d/e", "~/f"])


def _words(key: str, option: click.Option) -> st.SearchStrategy[list[str]]:
    """Draw how an option is typed, or that it is not."""
    hint = Request.__dataclass_fields__.get(str(option.name))
    many = hint is not None and str(hint.type).startswith("tuple[")
    values: st.SearchStrategy[str] = NAMES | PATHS
    if option.is_flag:
        return st.sampled_from([[], [f"--{key}"]])
    if isinstance(option.type, click.IntRange):
        values = st.integers(1, 9).map(str)
    elif isinstance(option.type, click.Choice):
        values = st.sampled_from([*option.type.choices])
    elif isinstance(option.type, click.Path):
        values = PATHS | st.sampled_from(["h", "i j/k"])
    elif key == "seed":
        values = st.lists(st.integers(0, 2**40), min_size=1).map(lambda seeds: ",".join(map(str, seeds)))
    elif option.multiple:
        assignment = st.tuples(st.sampled_from(["a.b", "method.model"]), st.text("ab=\"'[] \\\n\x7f") | PATHS)
        return st.lists(assignment.map(lambda pair: f"--{key}={pair[0]}={pair[1]}"), max_size=3)
    elif many:
        values = st.lists(values, min_size=1).map(",".join)
    return st.just([]) | values.map(lambda value: [f"--{key}={value}"])


@given(st.tuples(*(_words(key, option) for key, option in options_by_key().items())))
def test_what_is_saved_is_what_was_typed(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[list[str], ...]
) -> None:
    """Any options: the file that `--save` writes, in another folder, makes the same request; and so again."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("typed")
        patch.chdir(folder)
        patch.setenv("BENCH_DATA", str(folder / "data"))
        (folder / "c").mkdir()
        words = [word for words in drawn for word in words]
        request, save = typed(*words, "--save", "d/e/x.toml")
        assert save is not None
        save.write([])
        assert typed("d/e/x.toml") == (request, None)
        again, save = typed("d/e/x.toml", "--save", "y.toml")
        assert save is not None
        save.write([])
        assert typed("y.toml")[0] == again == request


def test_paths_are_saved_relative_to_the_file(folder: Path) -> None:
    """A task is a folder where no suite has it; ids of a hub and names stay, official data are where they are."""
    for path in ("mine", "scifact", "models/m", "beir/scifact"):
        (folder / path).mkdir(parents=True)
    words: tuple[str, ...] = (
        "--task",
        "mine,scifact,beir/scifact,mine:dev",
        "--backbone",
        "models/m",
        "--rerank",
        "owner/name",
    )
    words += ("--corpus", str(folder / "data" / "texts"), "--set", "method.model=models/m", "--set", "a.b=mine")
    _, save = typed(*words, "--save", "exp/a.toml")
    assert save is not None
    save.write([load().suite("beir")])
    assert (folder / "exp" / "a.toml").read_text().splitlines()[1:] == [
        'task = ["../mine", "scifact", "beir/scifact", "../mine:dev"]',
        'backbone = "../models/m"',
        'corpus = "$BENCH_DATA/texts"',
        'rerank = "owner/name"',
        'set = ["method.model=../models/m", "a.b=mine"]',
    ]


def test_variants_are_saved_too(folder: Path) -> None:
    """In a file elsewhere they say the same."""
    (folder / "a.toml").write_text(BM25 + '[variants."b 2"]\nconfig = "c.toml"\nset.a.b = "./d"\n[variants.e]\n')
    request, save = typed("a.toml", "--save", "exp/b.toml")
    assert save is not None
    save.write([])
    assert [*typed("exp/b.toml")[0].each().values()] == [*request.each().values()]


def test_a_file_that_says_otherwise_is_not_overwritten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that says the same stays as it is, comments included; what cannot be written leaves nothing."""

    def save(*words: str) -> Callable[[], None]:
        _, place = typed(*words)
        assert place is not None
        return lambda: place.write([])

    text = "# mine\n\nseed = [0, 1]\nmethod = ['bm25']\n"
    (folder / "a.toml").write_text(text)
    save("--method", "bm25", "--seed", "0,1", "--save", "a.toml")()
    with pytest.raises(UsageError, check=fields(where="a.toml", found="another experiment", hint="another name")):
        save("--method", "bm25", "--save", "a.toml")()
    with pytest.raises(UsageError, check=fields(where="--save", found="a.txt", expected=".toml")):
        save("--method", "bm25", "--save", "a.txt")
    with pytest.raises(StoreError, match="nothing was run"):
        save("--method", "bm25", "--save", "a.toml/b.toml")()
    with pytest.raises(UsageError, check=fields(where="--save", expected="UTF-8")):
        save("--method", os.fsdecode(b"\xff"), "--save", "b.toml")()
    assert [path.name for path in folder.iterdir()] == ["a.toml"]
    assert (folder / "a.toml").read_text() == text
