"""Count what design decisions want to be few, and list all settings in settings.md: `make counts` and `make docs`.

Settings are counted as `bench show` lists them: those of the harness once, those of a method once for each method that
has them. A method's key is *set* if a preset, a cell, a search space, a profile or anything under `experiments/` gives
it a value. Classes between typed words and stages are those of `bench.config` and of `bench.pipeline` without its
stages. The walk of `request` begins at the command `bench run` and follows, by names alone, every call of `bench` that
is handed something of a request or whose function reads one; a *climb* is a call that leads to a module nearer to the
command than the caller's.
"""

import ast
import re
import sys
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic.fields import FieldInfo

from bench import plugins
from bench.config.fields import Kind, flat, harness_key, leaves_of, source_of
from bench.config.layers import describe
from bench.config.profiles import PROFILES
from bench.core.errors import UsageError
from bench.pipeline.settings import RunConfig
from bench.types import Method

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "settings.md"
_MOST_TARGETS = 4  # methods of one name that a call through an object may lead to; more say nothing
_SHOWN = 4  # presets and the like that one line of the page names

KEPT_BECAUSE = {
    "train.vocabulary": "decides most of the time of masked prediction on a small machine",
    "train.probe_every": "users watch their own trainings by it",
    "train.probe_pairs": "users watch their own trainings by it",
    "train.probe_languages": "users watch their own trainings by it",
    "train.token_bucket": "few shapes, for whoever compiles on hardware of their own",
    "train.compile": "few launches, on hardware of one's own",
    "method.precision": "ready models are read in either, whatever trainings run in",
    "method.margin_sign": "Auto-MLM's equation 6 is printed with the other sign",
    "method.automlm_side": "Auto-MLM leaves open whose tokens are hidden; an ablation varies it",
    "method.automlm_detach": "an ablation of Auto-MLM varies it",
    "method.window_semantics": "CCP's table 6 and the code that descends from it mean different windows",
    "method.inbatch_cross_language": "CCP's formula and its text disagree",
    "method.abn.order": "CCP's algorithm 1 and its text disagree; an ablation varies it",
    "post.rotation.init": "calibration is varied by an experiment; CCP's own start is adversarial",
}
"""Why settings stay that nothing in the repository sets."""


def set_by() -> dict[str, dict[str, None]]:
    """Return what sets each dotted key: presets with cells, search spaces, profiles, recipes, experiments."""
    setters: dict[str, dict[str, None]] = defaultdict(dict)
    for key, setter in _values_set():
        setters[key][setter] = None
    return setters


def _values_set() -> Iterator[tuple[str, str]]:
    """Yield each dotted key that something in the repository sets, and what sets it."""
    for method in methods():
        yield from ((f"method.{key}", f"search space of {method.name}") for key in method.space)
        for name, preset in method.presets.items():
            for values in (preset.values, *(cell.values for cell in preset.cells)):
                yield from ((f"method.{key}", f"`{method.name}/{name}`") for key, _ in flat(values))
    for profile in PROFILES.values():
        own = [f"method.{key}" for key in profile.most]
        yield from ((key, f"profile {profile.name}") for key in (*own, *dict(flat(profile.values))))
    for name, suite in plugins.load().suites.items():
        recipes = [recipe for by_name in suite.value.recipes.values() for recipe in by_name.values()]
        yield from (
            (f"tune.{key}", f"recipes of {name}") for recipe in recipes for step in recipe for key in step.values
        )
    for name, run in plugins.load().runs.items():
        yield from ((key, f"run preset {name}") for key, _ in flat(run.value.values))
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "experiments").glob("*.*"))
    sections = "|".join(("method", *RunConfig.model_fields))
    yield from ((key, "experiments") for key in re.findall(rf"\b((?:{sections})(?:\.[a-z_0-9]+)+)\s*=", text))


def methods() -> list[Method]:
    """Return the methods of this distribution, by name."""
    return [owned.value for _, owned in sorted(plugins.load().methods.items())]


def unset_keys() -> list[str]:
    """Return the distinct keys of methods that nothing in the repository sets."""
    setters = set_by()
    keys = dict.fromkeys(f"method.{key}" for method in methods() for key in leaves_of(method.config))
    return [key for key in keys if not setters.get(key)]


def classes_before_stages() -> tuple[int, int]:
    """Return the classes between typed words and stages, and the files that hold them."""
    paths = [*(ROOT / "bench" / "config").rglob("*.py"), *(ROOT / "bench" / "pipeline").rglob("*.py")]
    counts = [
        sum(isinstance(node, ast.ClassDef) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        for path in paths
        if "stages" not in path.parts
    ]
    return sum(counts), sum(map(bool, counts))


class RequestWalk:
    """The calls that carry a request through `bench`, from one function on."""

    def __init__(self, root: Path = ROOT, start: tuple[str, str] = ("bench.cli.run", "command")) -> None:
        self.functions: dict[tuple[str, str], ast.FunctionDef] = {}  # (module, qualified name) → definition
        self.by_method: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self.imports: dict[str, dict[str, tuple[str, str]]] = {}
        for path in sorted((root / "bench").rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            self._index(".".join(parts[:-1] if parts[-1] == "__init__" else parts), path)
        self.distance, self.calls = {start[0]: 0}, list[tuple[tuple[str, str], tuple[str, str]]]()
        queue, visited = deque([start]), {start}
        while queue:
            caller = queue.popleft()
            for callee in dict.fromkeys(self._callees(caller)):
                self.calls.append((caller, callee))
                self.distance.setdefault(callee[0], self.distance[caller[0]] + 1)
                if callee not in visited:
                    visited.add(callee)
                    queue.append(callee)

    @property
    def climbs(self) -> int:
        """Calls that lead to a module nearer to the command."""
        return sum(self.distance[callee[0]] < self.distance[caller[0]] for caller, callee in self.calls)

    def _index(self, module: str, path: Path) -> None:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        self.imports[module] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    self.imports[module][alias.asname or alias.name] = (node.module, alias.name)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.functions[module, node.name] = node
            elif isinstance(node, ast.ClassDef):
                for member in node.body:
                    if isinstance(member, ast.FunctionDef):
                        self.functions[module, f"{node.name}.{member.name}"] = member
                        self.by_method[member.name].append((module, f"{node.name}.{member.name}"))

    def _callees(self, caller: tuple[str, str]) -> Iterator[tuple[str, str]]:
        for node in ast.walk(self.functions[caller]):
            if isinstance(node, ast.Call):
                arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
                carries = any(map(_reads_request, arguments))
                for callee in self._targets(caller[0], node):
                    if carries or _reads_request(self.functions[callee]):
                        yield callee

    def _targets(self, module: str, call: ast.Call) -> list[tuple[str, str]]:
        """Return the functions that a call may lead to; partial functions lead to what they hold."""
        function = call.func
        if isinstance(function, ast.Name):
            held = [one.id for one in call.args[:1] if isinstance(one, ast.Name) and function.id == "partial"]
            return [target for name in (function.id, *held) for target in self._defined(module, name)]
        if not isinstance(function, ast.Attribute):
            return []
        if isinstance(function.value, ast.Name) and function.value.id in self.imports[module]:
            package, name = self.imports[module][function.value.id]
            if f"{package}.{name}" in self.imports:
                return self._defined(f"{package}.{name}", function.attr)
            return [key for key in [(package, f"{name}.{function.attr}")] if key in self.functions]
        targets = self.by_method[function.attr]
        return targets if len(targets) <= _MOST_TARGETS else []

    def _defined(self, module: str, name: str) -> list[tuple[str, str]]:
        """Return the function of a name in a module, or how the class of that name is made, through re-exports."""
        while module in self.imports:
            for qualified in (name, f"{name}.__init__", f"{name}.__post_init__"):
                if (module, qualified) in self.functions:
                    return [(module, qualified)]
            if name not in self.imports[module]:
                break
            module, name = self.imports[module][name]
        return []


def _reads_request(tree: ast.AST) -> bool:
    """Return whether code names a request: as a variable, an argument or an attribute."""
    return any(
        "request" in (getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "arg", ""))
        for node in ast.walk(tree)
    )


def constants() -> dict[str, tuple[object, str]]:
    """Return the constants by the key that each had as a setting: value and source."""
    return {key: (leaf.default, source_of(leaf)) for key, leaf in _retired("constant").items()}


def moved() -> dict[str, str]:
    """Return the key of the harness's setting by each key that was a setting of its own."""
    return {key: harness_key(leaf) for key, leaf in _retired("shared").items()}


def _retired(kind: Kind) -> dict[str, FieldInfo]:
    """Return the fields of a kind, of the harness and of all methods, by the key that each had as a setting."""
    leaves = leaves_of(RunConfig, kind=kind)
    for method in methods():
        leaves = {**leaves_of(method.config, "method.", kind=kind), **leaves}
    return leaves


def settings_page() -> str:
    """Return settings.md: what is fixed, with value and source, and what is a setting, with what sets it."""
    setters = set_by()
    lines = [
        "# Settings, and values that are fixed",
        "",
        "Which settings exist, which keys moved, and which values are fixed. `make docs` writes this page from the",
        "code.",
        "",
        "- A value is a setting if a preset, a cell, a search space, a profile or an experiment of this repository",
        "  sets it, if a paper leaves it open, or if users need it for their own data, hardware and time.",
        "- Values that nobody varies are fixed since 0.2.0. If you type such a key, the error states its value and its",
        "  source. Python code that builds a config may still set another value.",
        "",
        "## Fixed values",
        "",
        "| key | fixed at | source |",
        "|---|---|---|",
        *(f"| `{key}` | {_cell(value)} | {_cell(source)} |" for key, (value, source) in sorted(constants().items())),
        "",
        "## Keys that moved",
        "",
        "Settings that each trainer used to declare for itself are settings of the harness since 0.2.0. If you type an",
        "old key, the error names the new one.",
        "",
        "| key | is now |",
        "|---|---|",
        *(f"| `{key}` | `{new_key}` |" for key, new_key in sorted(moved().items())),
        "",
        "## Settings of the harness",
        "",
        "| key | default | source of the default | set by, or kept because |",
        "|---|---|---|---|",
    ]
    lines += [_row(row.key, row.default, row.source, setters) for row in describe(RunConfig())]
    lines += ["", "## Settings of the methods", "", "| key | methods | set by, or kept because |", "|---|---|---|"]
    owners: dict[str, list[str]] = defaultdict(list)
    for method in methods():
        for key in leaves_of(method.config, "method."):
            owners[key].append(method.name)
    for key, names in owners.items():
        lines.append(f"| `{key}` | {', '.join(names)} | {_reason(key, setters)} |")
    return "\n".join(lines) + "\n"


def _row(key: str, default: object, source: str, setters: Mapping[str, Mapping[str, None]]) -> str:
    return f"| `{key}` | {_cell(default)} | {_cell(source)} | {_reason(key, setters)} |"


def _reason(key: str, setters: Mapping[str, Mapping[str, None]]) -> str:
    """Return what sets a key, a few places at most, or why it is kept."""
    places = list(setters.get(key, {}))
    if places:
        return ", ".join(places[:_SHOWN]) + (f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else "")
    return KEPT_BECAUSE.get(key, "" if key.startswith("method.") else "users' own data, hardware and time")


def _cell(value: object) -> str:
    return ("none" if value is None else str(value)).replace("|", "\\|")


def main() -> None:
    """Print the counts; with `--write`, write settings.md in place of that."""
    if sys.argv[1:] == ["--write"]:
        DOCUMENT.write_text(settings_page(), encoding="utf-8")
        return
    if sys.argv[1:]:
        raise UsageError(where="docs/counts.py", found=" ".join(sys.argv[1:]), expected="--write or nothing")
    harness, of_methods = len(leaves_of(RunConfig)), sum(len(leaves_of(method.config)) for method in methods())
    unset, (classes, files), walk = unset_keys(), classes_before_stages(), RequestWalk()
    lines = (
        f"settings: {harness + of_methods} ({harness} of the harness, {of_methods} of methods)",
        f"keys of methods that nothing sets: {len(unset)} ({', '.join(unset)})",
        f"classes between typed words and stages: {classes} in {files} files",
        f"the walk of request: {len(walk.distance)} files, {len(walk.calls)} calls, {walk.climbs} climbs",
    )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
