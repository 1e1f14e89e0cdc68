"""What a person types who does not know the command yet: each is answered by what to type instead, on a few lines.

A row is what is typed, what its answer holds (on the screen, stderr and stdout), and how many lines of stderr it takes;
the exit status is 2 unless it is given. `{…}` are places that `places` makes.
"""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench.cli.run import command as run_command

Row = tuple[str, tuple[str, ...], int] | tuple[str, tuple[str, ...], int, int]
BM25 = "run --method bm25 --suite mrtydi"
USAGE = 2
"""Lines of an answer that begins with the usage of the command."""
RELEASED = "--method pretrained --set method.model="
NO_SUITE = "no suite was named; type --suite NAME, there are: askubuntu, beir"

ROWS: tuple[Row, ...] = (
    # names of tasks, suites and methods
    (
        f"{BM25} --task swahili",
        ("no task 'swahili'; did you mean sw? There are: ar, bn, en, fi, id, ja, ko, ru, sw, te, th.",),
        1,
    ),
    (f"{BM25} --task Swahili,sw", ("did you mean sw?",), 1),
    ("run --method bm25 --suite tatoeba --task french", ("did you mean fra-eng? There",), 1),
    (f"{BM25} --task zz", ("no task 'zz'. There are: ar, bn",), 1),
    (f"{BM25} --task {{tiny}}", ("suite mrtydi takes no folder of your own",), 1),
    (
        "run --method bm25 --suite beir --task {tiny}/corpus.jsonl",
        ("expected one that holds corpus.jsonl, queries.jsonl",),
        1,
    ),
    ("run --method bm25 --suite scifact", ("no suite 'scifact'", "--suite beir --task scifact"), 1),
    ("run --method bm25 --suite beir/scifact", ("--suite beir --task scifact",), 1),
    ("run --method bm25 --suite SciFact --data official", ("--suite beir --task scifact",), 1),
    (
        "run --method bm25 --suite sw",
        ("a task of miracl, mrtydi, mrtydi-v1-0, mrtydi-goldp: --suite miracl --task sw",),
        1,
    ),
    ("run --method bm25 --suite bier", ("did you mean beir?",), 1),
    ("run --method bm25 --suite bm25", ("it is a method: --method bm25",), 1),
    ("run --method mrtydi --suite bm25", ("it is a suite: --suite mrtydi",), 1),
    ("run --method bm25 --task {tiny}", ("no suite was named for ", "; folders are read by --suite beir"), 1),
    ("run --method bm25 --task sw", (NO_SUITE,), 1),
    ("run --suite beir --task {tiny}", ("no method was named; type --method NAME, there are: auto-mlm, bm25",), 1),
    ("run --method bm52 --suite mrtydi", ("no method 'bm52'; did you mean bm25?",), 1),
    ("run --method BM25,msn --suite mrtydi", ("no method 'msn'; did you mean msm?",), 1),
    (
        "run --method sentence-transformers/all-MiniLM-L6-v2 --suite mrtydi",
        (f"{RELEASED}sentence-transformers/all-MiniLM-L6-v2.",),
        1,
    ),
    ("run --method ./my-model --suite mrtydi", (f"{RELEASED}./my-model",), 1),
    ("run --method all-minilm --suite mrtydi", (f"{RELEASED}OWNER/NAME",), 1),
    ("show bm52", ("nothing is called 'bm52'; did you mean bm25?",), 1),
    ("show scifact", ("it is a task: bench show beir/scifact",), 1),
    ("show mrtydi/swahili", ("did you mean mrtydi/sw? There",), 1),
    ("show nowhere.json", ("nowhere.json", "expected a result file"), 1),
    ("plugin check bm52", ("did you mean bm25?",), 1),
    ("data check beir --task scifcat", ("did you mean scifact?",), 1),
    ("data fetch bier", ("did you mean beir?",), 1),
    # settings
    (f"{BM25} --set lr=1e-3", ("lr (--set) is no setting; did you mean tune.learning_rate (a number > 0)",), 2),
    (
        "run --method msm --suite mrtydi --set lr=1e-3",
        ("did you mean method.learning_rate (a number > 0) or tune.",),
        2,
    ),
    ("run --method msm --suite mrtydi --set method.lr=1", ("did you mean method.learning_rate",), 2),
    (f"{BM25} --set k1=1", ("did you mean method.k1 (a number ≥ 0)?",), 2),
    (f"{BM25} --set method.k1=high", ('method.k1 is "high" (--set), expected a number ≥ 0',), 1),
    (f"{BM25} --set method.k1=", ("expected a number ≥ 0",), 1),
    (f"{BM25} --set search=10", ("is a section, expected one of its keys: search.k",), 2),
    (f"{BM25} --set method.k1", ("--set", "method.k1"), 1),
    (f"{BM25} --config nowhere.toml", ("nowhere.toml", "expected a TOML file"), 1),
    # options
    ("run --method msm --lr 1e-3", ("no option --lr; type --set method.learning_rate=1e-3",), USAGE),
    ("run --method msm --learning-rate=1e-3", ("type --set method.learning_rate=1e-3",), USAGE),
    ("run --epochs 3", ("type --set tune.epochs=3",), USAGE),
    ("run --pooling mean", ("type --set method.pooling=mean",), USAGE),
    (f"{BM25} --language sw", ("type --task sw (of a folder of your own: --set data.language=sw)",), USAGE),
    (f"{BM25} --lang sw", ("type --task sw",), USAGE),
    ("run --model intfloat/e5-small --suite mrtydi", (f"type {RELEASED}intfloat/e5-small",), USAGE),
    ("run --model", (f"type {RELEASED}VALUE",), USAGE),
    ("run --encoder ./folder", (f"type {RELEASED}./folder",), USAGE),
    ("run --dataset beir --method bm25", ("type --suite beir",), USAGE),
    (f"{BM25} --gpu", ("type --device cuda",), USAGE),
    (f"{BM25} --output out", ("type --results out",), USAGE),
    ("run --methods bm25", ("did you mean --method?",), USAGE),
    ("run --taks sw", ("did you mean --task?",), USAGE),
    ("run --frobnicate", ("no option --frobnicate; there are: --method, --suite, --task",), USAGE),
    ("run --method bm25 --suite", ("'--suite' requires an argument",), 1),
    ("compare bm25 other --metric RR@10", ("type --measure RR@10",), USAGE),
    ("compare bm25 other --task sw", ("type --per-task",), USAGE),
    ("doctor --fix", ("no option --fix; there are: --store, --data-dir, --json",), USAGE),
    ("--verison", ("did you mean --version?",), USAGE),
    # seeds, profiles and places to run
    ("plan --method crop --suite mrtydi --task sw --seed 1-3 --stages", ("seed 1", "seed 2", "seed 3"), 0, 0),
    ("run --method crop --suite mrtydi --seed 3-1", ("--seed: found '3-1'", "--seed 0,1,2 or --seed 0-2"), 1),
    ("run --method crop --suite mrtydi --seed 0-99999999", ("--seed 0,1,2 or --seed 0-2",), 1),
    ("run --method crop --suite mrtydi --seed 0..2", ("--seed 0,1,2 or --seed 0-2",), 1),
    ("run --method crop --suite mrtydi --seed -1", ("--seed 0,1,2 or --seed 0-2",), 1),
    (f"{BM25} --regime zero-shot", ("did you mean few-shot? There are: unsupervised",), 1),
    (f"{BM25} --profile full", ("no profile 'full'. There are: mini, small, paper.",), 1),
    (f"{BM25} --preset bm25/lucne", ("did you mean lucene?",), 1),
    (f"{BM25} --device gpu", ("expected auto, cpu, cuda, cuda:N or mps",), 1),
    (f"{BM25} --executor sge", ("expected one of local, ray, slurm",), 1),
    (f"{BM25} --workers 0", ("--workers", "x>=1"), USAGE),
    (f"{BM25} --label 'my run'", ("letters, digits and", "without blanks"), 1),
    (f"{BM25} --rerank ./nowhere", ("nowhere: found no such folder, expected a cross-encoder",), 1),
    ("run --method crop --suite mrtydi --corpus ./nowhere", ("corpus nowhere: found no such file or folder",), 1),
    # what does not apply
    (
        "run --method msm --suite lareqa --regime few-shot --task ar",
        ("(it has: unsupervised, english)", "nothing was run"),
        1,
    ),
    (
        "few-shot --method bm25 --suite lareqa --task ar",
        ("found nothing to tune", "(it has: unsupervised, english)"),
        1,
    ),
    ("few-shot --method msm --suite beir --shots ten", ("--shots 0,100,300,all",), 1),
    ("sweep --method msm", ("type --suite NAME",), 1),
    ("sweep --method msm --suite lareqa", ("suites with dev questions: askubuntu, beir",), 1),
    ("ablate msm/headz", ("did you mean msm/heads",), 1),
    # results
    ("compare bm25 here --results {results}", ("bm25 − here",), 0, 0),
    ("compare bm25 other --results {results}", ("expected one of beir, mrtydi; type --suite beir",), 1),
    ("compare bm25 --results {results}", ("found 1 system, expected two or more: bench compare A B",), 1),
    ("compare --results {results}", ("found 0 systems, expected two or more",), 1),
    ("compare bm25 minilm --results {results}", ("no system 'minilm'. There are: bm25, elsewhere, here, other.",), 1),
    ("compare here elsewhere --results {results}", ("no suite on which all 2 have results", "elsewhere: mrtydi"), 1),
    ("compare bm25 other --suite beir --regime englisch --results {results}", ("did you mean english?",), 1),
    ("export bm25 --suite beir --out out --results {results}", ("bm25, which has no encoder",), 1),
    ("export crop --out out --results {results}", ("no system 'crop'. There are: bm25, elsewhere, here, other.",), 1),
    ("export --out out", ("found no SYSTEM, expected one; `bench list results` helps",), 1),
    ("reproduce", ("expected a result file that is there",), 1),
    ("reproduce {tiny}/corpus.jsonl", ("expected a file result.json",), 1),
    # judgements and runs
    ("score --run {qrels} --qrels {qrels} --measures nDCG@10", ("qrels.txt:1: found a judgement", "for --qrels"), 1),
    ("score --run {tiny}/qrels/test.tsv --qrels {qrels} --measures nDCG@10", ("test.tsv:1: found a judgement",), 1),
    ("score --run {run} --qrels {run} --measures nDCG@10", (":1: found a line of a run", "for --run"), 1),
    ("score --run {run} --qrels {qrels}", ('expected some, e.g. --measures "nDCG@10 R@100 RR@100"',), 1),
    ("score --run {run} --qrels {qrels} --measures nDCG10", ("did you mean nDCG?",), 1),
    ("score --run {run}", ("expected one of the two along with --run FILE",), 1),
    ("score --run nowhere.trec --qrels {qrels} --measures nDCG@10", ("found no such file",), 1),
    # official data that is not here
    ("run --method bm25 --suite beir --task scifact --data official --offline", ("--data-dir or BENCH_DATA",), 1),
    (f"{BM25} --task sw --data official", ("set BENCH_DATA", "`bench data fetch mrtydi`"), 1),
    (f"{BM25} --data offical", ("did you mean official?",), 1),
    # commands
    ("help run", ("Usage: bench run [OPTIONS]", "From what:"), 0, 0),
    ("--help run", ("Usage: bench run [OPTIONS]",), 0, 0),
    ("help rnu", ("did you mean run?",), USAGE),
    ("runs --method bm25", ("no command 'runs'; did you mean run?",), USAGE),
    ("leaderboard biuld", ("did you mean build?",), USAGE),
    ("plugin new methd mine", ("did you mean method?",), USAGE),
    ("completion powershell", ("'bash', 'zsh', 'fish'",), USAGE),
)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Results of two systems on two suites and of one on either alone, a run, judgements in TREC's form."""
    place = tmp_path_factory.mktemp("odd")
    tiny = Path(__file__).parents[1] / "fixtures" / "tiny-beir"
    folders = ["--store", str(place / "store"), "--results", str(place / "results")]
    here, elsewhere = ["--suite", "beir", "--task", str(tiny)], ["--suite", "mrtydi", "--task", "sw"]
    other = ["--set", "method.k1=2", "--label", "other"]
    for words in (
        *(here, elsewhere, [*here, *other], [*elsewhere, *other]),
        [*here, "--set", "method.b=0.1", "--label", "here"],
        [*elsewhere, "--set", "method.b=0.1", "--label", "elsewhere"],
    ):
        CliRunner().invoke(run_command, ["--method", "bm25", *words, *folders], catch_exceptions=False)
    rows = [line.split("\t") for line in (tiny / "qrels" / "test.tsv").read_text().splitlines()[1:]]
    qrels = place / "qrels.txt"
    qrels.write_text("".join(f"{query} 0 {document} {grade}\n" for query, document, grade in rows))
    run = next((place / "results" / "local").glob("**/bm25-*/**/*.trec.gz"))
    return {"tiny": tiny, "results": place / "results", "qrels": qrels, "run": run}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_to_type_instead(bench: Callable[..., Any], places: Mapping[str, Path], row: Row) -> None:
    """The answer holds what the row says, on so many lines, none of them too long to be read."""
    typed, held, lines, status = (*row, 2)[:4]
    completed = bench(*shlex.split(typed.format(**places)), status=status)
    screen = completed.stderr + completed.stdout
    assert [part for part in held if part not in screen] == []
    assert "Traceback" not in screen
    answer = completed.stderr.splitlines()
    assert len(answer) <= lines if status else lines == 0
    assert max(map(len, answer), default=0) < 1_200


def test_there_are_many() -> None:
    """At least seventy, none twice."""
    assert len({row[0] for row in ROWS}) == len(ROWS) >= 70
