"""Settings: TOML files and `--set`, whatever stands in them, through `bench plan`."""

from pathlib import Path

from tests.fuzz.harness import ODD, Case, Draw, command, warmed

TINY = Path(__file__).parents[1] / "fixtures" / "tiny-beir"
KEYS = [
    "method.k1",
    "method.analyzer",
    "search.k",
    "data.unknown_ids",
    "budget.tokens",
    "post.kind",
    "tune.shots",
    "label",
]
PLAN = ("plan", "--method", "bm25", "--suite", "beir", "--task", str(TINY))
LINES = (
    "[method]", "k1 = 0.9", "b = {}", "[search]", "k = {}", "[data]", "language = {}", "[[x]]", "a.b.c = {}", "= 1",
    '"quoted key" = {}', "d = 1979-05-27", "e = [1, 2, {}]", "f = {{ g = {} }}", "h = '''{}'''", "# {}",
)  # fmt: skip


def _value(draw: Draw) -> str:
    odd = draw.choice((*ODD, "9" * 5_000, "[" * 2_000, "{a=" * 500, "1e9", "true", '"text"', "0x1F", "-inf"))
    return str(odd).replace("\x00", "\x01")


def case(draw: Draw, folder: Path) -> Case:
    warmed(*PLAN, "--store", "/nonexistent/store")
    lines = [line.format(_value(draw)) if "{" in line else line for line in draw.choices(LINES, k=draw.randint(1, 6))]
    path = folder / "settings.toml"
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    path.write_bytes(draw.damaged(data) if draw.random() < 0.3 else data)
    sets = [f"{draw.choice((*KEYS, 'no.such', '', 'x' * 3_000))}={_value(draw)}" for _ in range(draw.randint(0, 2))]
    options = [word for setting in sets for word in ("--set", setting.encode("utf-8", "replace").decode())]
    file = ["--config", str(path)] if draw.random() < 0.7 else []
    places = ("--store", folder / "store", "--results", folder / "results")
    return Case(command(*PLAN, *places, *file, *options))
