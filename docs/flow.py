"""Draw the flow of stages and list the layers of packages in architecture.md, both from the code: `make docs`.

An input of a stage is a field that holds another stage. What fields hold is read off a plan that uses most of them, and
of the others off the types that their classes declare.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import get_args, get_origin, get_type_hints

import bench
from bench.pipeline import stages
from bench.store.stage import Stage

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "architecture.md"
PLANNED = bench.Request(
    methods=("bm25+crop",),
    suites=("mrtydi",),
    tasks=("sw",),
    regimes=("unsupervised", "english"),
    rerank="trained",
    sets=("tune.mine=self", "post.kind=calibrate"),
    store=ROOT / "build" / "empty",  # nothing is written there: the embedded world has no files
)


def named(kind: type[Stage]) -> set[type[Stage]]:
    """Return a class and all its subclasses, as far as they have a name."""
    return set[type[Stage]]({kind} if hasattr(kind, "name") else ()).union(*map(named, kind.__subclasses__()))


def classes() -> list[type[Stage]]:
    """Return the stage classes of the harness, by name and module."""
    for module in iter_modules(stages.__path__):
        import_module(f"{stages.__name__}.{module.name}")
    own = {(kind.name, str(kind)): kind for kind in named(Stage) if kind.__module__.startswith(stages.__name__)}
    return [own[key] for key in sorted(own)]


def inputs(kinds: Iterable[type[Stage]]) -> Mapping[str, set[str]]:
    """Return the inputs of every stage, by the names that stages have in keys."""
    found: dict[str, set[str]] = {kind.name: set() for kind in kinds}
    for user in (step.stage for step in bench.plan(PLANNED).steps):
        found[user.name] |= {given.name for given in user.inputs.values()}
    for kind in kinds:
        for hint in get_type_hints(kind).values():
            kinds_held = () if get_origin(hint) is tuple else get_args(hint) or (hint,)  # tuples hold shares, no inputs
            held = {one for one in kinds_held if isinstance(one, type) and issubclass(one, Stage)}
            found[kind.name] |= {known.name for one in held - {Stage} for known in named(one)}
    return {name: given - {name} for name, given in found.items()}


def below(given: Mapping[str, set[str]], name: str) -> set[str]:
    """Return all that a stage rests on, itself only if it is on a circle."""
    found, left = set[str](), {name}
    while left:
        left = set[str]().union(*(given[one] for one in left)) - found
        found |= left
    return found


def in_order(given: Mapping[str, set[str]]) -> list[str]:
    """Return the stages, inputs first, those for a task last; on a circle the stage that lacks fewest inputs."""
    rests, order = {name: below(given, name) for name in given}, list[str]()

    def rank(name: str) -> tuple[bool, bool, int, bool, str]:
        lacks = given[name] - {*order}
        circle = {one for one in lacks if name in rests[one]}
        return lacks != circle, "validate" in {name} | rests[name], len(lacks), not given[name] & {*order[-1:]}, name

    while len(order) < len(given):
        order.append(min(given.keys() - {*order}, key=rank))
    return order


def flow() -> str:
    """Return one line a stage: its name, a lane for every output that is still needed, and what it does."""
    given, said = inputs(classes()), dict[str, dict[str, None]]()
    for kind in (kind for kind in classes() if "name" in vars(kind)):
        said.setdefault(kind.name, {})[(kind.__doc__ or "").partition("\n")[0].partition(";")[0].rstrip(".")] = None
    order, lanes, lines = in_order(given), list[str](), list[str]()
    for at, name in enumerate(order):
        place = lanes.index("") if "" in lanes else len(lanes)
        lanes[place : place + 1] = [name]
        drawn = ["●" if one == name else "○" if one in given[name] else "│" if one else " " for one in lanes]
        note = "".join(f" (and {one}, below)" for one in sorted(given[name] - {*order[:at]}))
        lines.append(f"{name:12}{' '.join(drawn):26}{'; '.join(said[name])}{note}")
        lanes = [one if any(one in given[user] for user in order[at + 1 :]) else "" for one in lanes]
    return "\n".join(["```text", *lines, "```"])


def layers() -> str:
    """Return the layers of the import contract, the highest first, with what each package says of itself."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    (found,) = (one["layers"] for one in tools["importlinter"]["contracts"] if one["type"] == "layers")
    lines = ["| layer | packages and modules |", "|---|---|"]
    for number, layer in zip(range(len(found), 0, -1), found, strict=True):
        said = []
        for name in re.findall(r"[\w.]+", layer):
            path = ROOT / name.replace(".", "/")
            source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            said.append(f"`{name}`: {source.read_text(encoding='utf-8').splitlines()[0].strip(chr(34))}")
        lines.append(f"| {number} | {'<br>'.join(said)} |")
    return "\n".join(lines)


def updated(text: str) -> str:
    """Return the document with what is between its markers made anew."""
    for name, made in (("flow", flow()), ("layers", layers())):
        between = re.compile(f"(?<=<!-- {name} -->\n).*(?=<!-- end of {name} -->)", flags=re.DOTALL)
        text = between.sub(lambda _, made=made: f"{made}\n", text)
    return text


if __name__ == "__main__":
    DOCUMENT.write_text(updated(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
