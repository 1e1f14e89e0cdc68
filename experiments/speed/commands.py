"""What surrounds the work: commands as a user types them, compared with a fixed piece of Python in its own process."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

from experiments.speed.measure import Row, Work, command

PEER = "10⁷ squares in Python"
BM25 = ("run", "--method", "bm25", "--suite", "mrtydi")
DEMO = ("run", "--method", "bm25,msm", "--suite", "mrtydi")
MAKEFILE = Path(__file__).parents[2] / "Makefile"
SHORT = (*re.findall(r"^SHORT := (.+)$", MAKEFILE.read_text(encoding="utf-8"), re.MULTILINE)[0].split(),
         "--set", "train.precision=auto")  # fmt: skip
"""What `make demo` cuts, and its precision."""


@contextmanager
def typed(folder: Path, words: tuple[str, ...], fresh: bool) -> Iterator[Mapping[str, Work]]:
    """Yield a command, which finds an empty folder each time, or what its first run left; and the peer."""
    numbers = count()

    def ours() -> None:
        place = folder / (f"{next(numbers)}" if fresh else "kept")
        place.mkdir(exist_ok=True)
        command("-m", "bench", *words, folder=place)()

    yield {"ours": ours, PEER: command("-c", "sum(i * i for i in range(10**7))", folder=folder)}


def row(*words: str, least: float, fresh: bool = False, rounds: int = 5, holds: str = "imports") -> Row:
    """Return the row of a command; `least` is how many times its seconds go into the peer's."""
    return Row(partial(typed, words=words, fresh=fresh), "command", 1, {PEER: least}, rounds, holds)


ROWS = {
    "bench --help": row("--help", least=5.0),
    "bench run --help": row("run", "--help", least=2.2),
    "bench list": row("list", least=1.0),
    "bench plan, 8,504 stages": row(
        "plan", "--preset", "mini-grid", least=0.1, rounds=3, holds="computing the keys of all stages"
    ),
    "a repeated run, 55 stages": row(*BM25, least=0.43, holds="imports, checking the seal of every manifest"),
    "a repeated run, 146 stages": row(
        *DEMO, "--set", "budget.tokens=20000", least=0.35, holds="imports, checking the seal of every manifest"
    ),
    "BM25 in an empty store": row(*BM25, least=0.1, fresh=True, rounds=3),
    "make demo, its second command in an empty store": row(
        *DEMO, *SHORT, least=0.008, fresh=True, rounds=1, holds="the training"
    ),
    "the demo in an empty store": row(*DEMO, least=0.0033, fresh=True, rounds=1, holds="the training"),
}
