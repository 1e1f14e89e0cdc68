"""The command that makes a result again, from what its file says."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.config.grids import CellReference
from bench.config.layers import written
from bench.config.request import Request
from bench.core.encoder_config import NO_TITLES
from bench.core.messages import bare

ANYWHERE = "path/to/"
"""In place of a folder on the user's machine; results do not say where a folder was."""
_USER_LAYERS = {"--set", "file"}
"""Layers of settings that no other option repeats."""
_NAMING = {*_USER_LAYERS, "preset"}
"""Layers of settings that a run names in a label."""
_START = "init"
_PROTOCOL, _RERANKED = "protocol", "rerank"


def reproduction_request(results: Sequence[Mapping[str, Any]], *, whole: bool) -> Request:
    """Return the request that reproduces a system's results.

    Args:
        results: contents of result files that differ in their seed only.
        whole: every task of the suite was run, so none is named.

    Returns:
        The request; paths of what lay on the user's machine begin with `ANYWHERE`.
    """
    first = results[0]
    system, suite = first["system"], first["suite"]["name"]
    kind, _, world = first["data"].partition("-")
    names = [bare(name).removeprefix(f"{suite}/") for name in first["tasks"]]
    tasks = () if whole else tuple(f"{ANYWHERE}{name}" if kind == "local" else name for name in names)
    presets = [str(row["origin"]).removeprefix("preset ") for row in _rows(first) if _layer(row) == "preset"]
    if system.get("grid") and not _is_variant(system):  # a cell is to bear its name whatever it changes
        presets = [f"{system['grid']['preset'].partition('/')[2]}={system['grid']['cell']}"]
    fitted = (system.get(part) or {} for part in ("post", "rerank"))  # post-processing, or a re-ranker
    corpus = _of_system(system, "corpus") or next((part["corpus"] for part in fitted if part.get("corpus")), None)
    if corpus:
        name = str(corpus["name"])
        corpus = name if bare(f"{name}/") == "" else f"{ANYWHERE}{name}"  # where a folder was is not known
    return Request(
        methods=(system["method"],),
        suites=(suite,),
        tasks=tasks,
        regimes=(first["regime"],),
        seeds=tuple(result["seed"] for result in results),
        data=None if kind == "local" else kind,
        profile=first["profile"],
        preset=f"{system['method']}/{presets[0]}" if presets else None,
        backbone=_anywhere(_of_system(system, "backbone")),
        corpus=corpus or None,
        rerank=_anywhere((system.get("rerank") or {}).get("model")),
        sets=tuple(f"{key}={written(_anywhere(value))}" for key, value in _typed_settings(first, world).items()),
        label=_label(system),
    )


def _anywhere(value: Any) -> Any:
    """A folder that a result calls `./NAME-DIGEST`, as one that may lie anywhere; any other value as it is."""
    return f"{ANYWHERE}{value.removeprefix('./')}" if isinstance(value, str) and value.startswith("./") else value


def run_command(results: Sequence[Mapping[str, Any]], *, whole: bool) -> list[str]:
    """Return the words of `bench run …`, not yet quoted for a shell; arguments as for `reproduction_request`.

    Example:
        `["bench", "run", "--method", "crop", "--suite", "mrtydi", "--seed", "0,1,2"]`
    """
    request = reproduction_request(results, whole=whole)
    options = {
        "--method": ",".join(request.methods),
        "--suite": ",".join(request.suites),
        "--task": ",".join(request.tasks),
        "--regime": ",".join(request.regimes),
        "--data": request.data,
        "--profile": request.profile,
        "--seed": ",".join(map(str, request.seeds)),
        "--backbone": request.backbone,
        "--corpus": request.corpus,
        "--rerank": request.rerank,
        "--preset": request.preset,
    }
    arguments = [word for option, value in options.items() if value for word in (option, value)]
    sets = [word for value in request.sets for word in ("--set", value)]
    return ["bench", "run", *arguments, *sets, *(["--label", request.label] if request.label else [])]


def _typed_settings(first: Mapping[str, Any], world: str) -> dict[str, Any]:
    """The settings that `--set` repeats, by key."""
    system = first["system"]
    settings = {row["key"]: row["value"] for row in _rows(first) if _layer(row) in _USER_LAYERS}
    for key in ("tune.data", "encode.prompts"):
        if settings.get(key) not in (None, "", "suite"):
            settings[key] = f"{ANYWHERE}{settings[key]}"
    settings |= {"mini.world": world} if world else {}
    readout = (system.get("readout") or {}).items()
    settings |= {f"encode.{key}": NO_TITLES if value is None else value for key, value in readout}
    settings |= {"encode.vectors": stored} if (stored := _of_system(system, "vectors")) else {}
    budgets = {f"budget.{unit}": _of_system(system, key) for unit, key in _BUDGETS.items()}
    return settings | {key: value for key, value in budgets.items() if value}


_BUDGETS = {"tokens": "budget", "flops": "budget_flops", "steps": "budget_steps"}


def _rows(first: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Settings of the system, then those of the harness that its first subset was made with."""
    yield from first["system"].get("settings", ())
    for subsets in first["tasks"].values():
        for subset in subsets.values():
            yield from subset.get("settings", ())
            return


def _of_system(system: Mapping[str, Any], key: str) -> Any:
    """What a system says, or the first of its parts that says it."""
    return next((part[key] for part in (system, *system.get("parts", ())) if part.get(key)), None)


def _label(system: Mapping[str, Any]) -> str | None:
    """The label that the user gave; endings that a run adds, and labels that it makes up itself, are left out.

    A run makes up the plain name of a method, only where none of its settings is typed, and names of settings, presets,
    cells and starts behind it.
    """
    label = str(system["label"]).replace(f"+{_of_system(system, 'vectors')}", "")  # of any part of a fusion
    for ending in (_RERANKED, (system.get("post") or {}).get("kind"), _PROTOCOL):
        label = label.removesuffix(f"+{ending}")
    if system.get("point"):
        label = label.rpartition("@")[0]
    layers = {_layer(row) for row in system.get("settings", ())}
    name, _, rest = label.partition("@")
    presets = {str(row["origin"]).removeprefix("preset ") for row in system.get("settings", ())}
    is_made_up = "=" in rest or rest in presets or rest.partition("@")[0] == _START if rest else not layers & _NAMING
    is_made_up &= name == system["method"]
    is_made_up &= not _is_variant(system)  # which is also called after settings that no label has by itself
    return None if is_made_up else label


def _is_variant(system: Mapping[str, Any]) -> bool:
    """Whether a system is a variant by `bench ablate --vary`, which `--set` makes again."""
    grid = system.get("grid")
    return grid is not None and CellReference(grid["preset"], grid["cell"]).is_variant


def _layer(row: Mapping[str, Any]) -> str:
    """The layer that set a value: `default`, `profile`, `preset`, `--set` or `file`."""
    return str(row["origin"]).partition(" ")[0]
