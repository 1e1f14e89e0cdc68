"""What a result says of itself: keys that a run writes and no others, and claims that fit each other.

None of it can be proven from the files. It is refused where one claim contradicts another, or what the installed method
and suite are, and where no run can write it; pages show the rest as handed in.
"""

import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from packaging.version import InvalidVersion, Version

from bench.config.profiles import PROFILES
from bench.data.formats.faults import shown
from bench.evaluation.results import RESULT, averages
from bench.evaluation.results.format import About, Average, Content, Remote, Setting, Subset, SuiteAbout
from bench.evaluation.results.identity import identity_error
from bench.types import REGIMES, Method, Suite
from leaderboard.submissions.bundle import TAKE_UNCHANGED, Candidate, ValidationErrors, is_start
from leaderboard.submissions.recompute import TOLERANCE

MOST_SETTINGS = 1_000
"""Settings of a system, or of a subset; the largest config of ours has some sixty."""
_STATED = frozenset({"deterministic", "tuning", "config", "encoder_config", "similarity", "read_by", "fuse"})
_SYSTEM = frozenset(About.model_fields) | _STATED
_SUBSET = frozenset(Subset.model_fields) | {"resolved", "harness", "compute", "seconds", "tunings", "audits"}
_ABSENT = object()
_KEY = re.compile(r"(?!(.)\1*$)[0-9a-f]{32}")
"""Key of a stage (`bench.store.stage.Stage.key`), a digest, which never repeats one digit alone."""
_CENTURY = 100 * 365.25 * 86_400
"""Seconds that no stage takes."""
_INSTALLED = version("retrieval-bench")
_SETTING = frozenset(Setting.model_fields) | {"default", "source"}


def check_metadata(candidate: Candidate, methods: Mapping[str, Method], errors: ValidationErrors) -> None:
    """Refuse keys that no run writes, a result without those that other commands read, and claims that do not fit.

    Args:
        candidate: the submitted result.
        methods: the installed methods; a label that begins with the name of one must be of it.
        errors: receives every contradiction.
    """
    content = candidate.raw_content
    subsets = [subset for by_subset in content["tasks"].values() for subset in by_subset.values()]
    settings = [setting for part in (content["system"], *subsets) for setting in part.get("settings", ())]
    for part, keys, name in (
        (content, {*Content.model_fields, "schema", "seal"}, "the result"),
        (content["system"], _SYSTEM, "system"),
        (content["suite"], set(SuiteAbout.model_fields), "suite"),
        *((average, set(Average.model_fields), "macro") for average in content["macro"]),
        *((remote, set(Remote.model_fields), "remote") for remote in content.get("remote", {}).values()),
        *((subset, _SUBSET, "tasks") for subset in subsets),
        *((setting, _SETTING, "settings") for setting in settings),
    ):
        if unknown := sorted(part.keys() - keys):
            errors.add(RESULT, f"the unknown key {shown(unknown[0])} in {name}", "known keys", TAKE_UNCHANGED)
    for part, key, kind in (
        (content["system"], "deterministic", bool),
        *((subset, "keys", dict) for subset in subsets),
    ):
        if not isinstance(part.get(key), kind):
            errors.add(RESULT, f"no `{key}`", f"`{key}` as every run writes it", TAKE_UNCHANGED)
    for part in (content["system"], *subsets):
        if len(part.get("settings", ())) > MOST_SETTINGS:
            errors.add(RESULT, f"{len(part['settings']):,} settings", f"at most {MOST_SETTINGS:,}", TAKE_UNCHANGED)
    _check_system(candidate, methods, errors)
    _check_profile(candidate, errors)
    for subset in subsets:
        _check_environment(subset, errors)
        _check_keys(subset, errors)
    measures = {name for subset in subsets for name in subset["measures"]}
    if (primary := candidate.content.suite.primary) not in {None, *measures}:
        errors.add(RESULT, f"the headline measure {shown(primary)}", "one that a task has", TAKE_UNCHANGED)


def check_regime(
    candidate: Candidate, methods: Mapping[str, Method], suite: Suite | str, errors: ValidationErrors
) -> None:
    """Refuse a regime that the method cannot be tuned for, and one that the stages of the system contradict.

    Args:
        candidate: the submitted result.
        methods: the installed methods.
        suite: the installed suite; a sentence where there is none, so that its recipes are not known.
        errors: receives every contradiction.
    """
    regime, system, stages = candidate.content.regime, candidate.content.system, _stages(candidate)
    parts = _installed_parts(system.method, methods)
    if "train_cross" in stages:  # a re-ranker can be trained in any regime, over whatever encoder
        return
    regimes = {name for part in parts for name in part.regimes}
    if parts and regime not in regimes:
        expected = ", ".join(name for name in REGIMES if name in regimes)
        errors.add(RESULT, f"regime {shown(regime)} of method {shown(system.method)}", expected, TAKE_UNCHANGED)
    elif isinstance(suite, Suite) and "init" in stages and ("tune" in stages) != bool(suite.recipes.get(regime)):
        fault = f"regime {shown(regime)} of an encoder that was {'' if 'tune' in stages else 'not '}fine-tuned"
        errors.add(RESULT, fault, "the regime that it was run in", TAKE_UNCHANGED)


def _stages(candidate: Candidate) -> set[str]:
    """Return the names of the stages that a system states."""
    return {str(node.get("stage")) for node in candidate.content.system.graph.values() if isinstance(node, dict)}


def _installed_parts(name: str, methods: Mapping[str, Method]) -> list[Method]:
    """Return a method, or those whose runs it fuses; nothing where one of them is not installed."""
    parts = [methods.get(part) for part in name.split("+")]
    return [part for part in parts if part is not None] if None not in parts else []


def _check_profile(candidate: Candidate, errors: ValidationErrors) -> None:
    """Refuse a profile that there is not, that never reads such data, or that settings contradict."""
    content = candidate.content
    profile = PROFILES.get(content.profile)
    if profile is None:
        errors.add(RESULT, f"profile {shown(content.profile)}", f"one of {', '.join(PROFILES)}", TAKE_UNCHANGED)
    elif content.data.startswith("mini") and profile.data != "mini":
        fault = f"profile {shown(content.profile)} on {content.data} data"
        errors.add(RESULT, fault, f"{profile.data} data", TAKE_UNCHANGED)
    origin = f"profile {content.profile}"
    for setting in content.system.settings:
        if setting.origin.startswith("profile ") and setting.origin != origin:
            fault = f"setting {shown(setting.key)} of {shown(setting.origin)}"
            errors.add(RESULT, fault, f"{origin}, in which it was run", TAKE_UNCHANGED)


def _check_keys(subset: Mapping[str, Any], errors: ValidationErrors) -> None:
    """Refuse keys of stages that are no digests, and one key of two stages."""
    keys = subset.get("keys")
    stage_of: dict[str, str] = {}
    for stage, key in keys.items() if isinstance(keys, dict) else ():
        if not (isinstance(key, str) and _KEY.fullmatch(key)):
            fault = f"key {shown(str(key)[:40])} of stage {shown(stage[:40])}"
            errors.add(RESULT, fault, "a digest of 32 digits", TAKE_UNCHANGED)
        elif stage_of.setdefault(key, stage) != stage:
            fault = f"one key of {shown(stage_of[key][:40])} and {shown(stage[:40])}"
            errors.add(RESULT, fault, "a key of each stage", TAKE_UNCHANGED)


def _check_system(candidate: Candidate, methods: Mapping[str, Method], errors: ValidationErrors) -> None:
    """Check label, method, hash, settings, seed and budget against each other."""
    system, raw = candidate.content.system, candidate.raw_content["system"]
    label = system.label
    if not (label.isascii() and label.isprintable() and " ".join(label.split()) == label):
        hint = "letters that look like others make two systems look like one; choose a name by --label"
        errors.add(RESULT, f"the label {label[:80]!a}", "printable ASCII, single blanks inside", hint)
    name, method = (re.split(r"[@+]", text)[0] for text in (label, system.method))  # of a fused one the first
    if name in methods and name != method:
        errors.add(
            RESULT, f"the label {shown(label)} of method {shown(system.method)}", f"method {name}", TAKE_UNCHANGED
        )
    if parts := _installed_parts(system.method, methods):
        deterministic = all(part.deterministic for part in parts) and "train_cross" not in _stages(candidate)
        if raw.get("deterministic") is not deterministic:
            fault = f"`deterministic` {shown(str(raw.get('deterministic'))[:40])} of method {shown(system.method)}"
            errors.add(RESULT, fault, str(deterministic).lower(), TAKE_UNCHANGED)
    if candidate.content.seed and raw.get("deterministic") is True:
        errors.add(RESULT, f"seed {candidate.content.seed} of a deterministic system", "seed 0", TAKE_UNCHANGED)
    least = 0 if is_start(label) else 1
    budgets = [(system.budget, system.budget_flops, system.budget_steps)]
    budgets += [(part.budget, part.budget_flops, part.budget_steps) for part in system.parts]
    for tokens, flops, steps in budgets:
        if tokens is not None and tokens < least and not (flops or steps):
            errors.add(RESULT, f"a budget of {tokens:,} tokens", f"at least {least}", TAKE_UNCHANGED)
        if flops is not None and not flops >= 1:
            errors.add(RESULT, f"a budget of {flops:g} operations", "at least 1", TAKE_UNCHANGED)
    if unlike := identity_error(candidate.raw_content):
        errors.add(RESULT, unlike, "one system, with one encoder for all its tasks", TAKE_UNCHANGED)
    for setting in system.settings:
        value = raw.get("config")
        for part in setting.key.removeprefix("method.").split("."):
            value = value.get(part, _ABSENT) if isinstance(value, dict) else _ABSENT
        known = value is not _ABSENT and not isinstance(value, dict)  # a file is there by its content
        if setting.key.startswith("method.") and known and value != setting.value:
            fault = f"setting {shown(setting.key)} = {shown(str(setting.value)[:80])}"
            errors.add(RESULT, fault, f"{shown(str(value)[:80])}, as the system's `config` has it", TAKE_UNCHANGED)


def _check_environment(subset: Mapping[str, Any], errors: ValidationErrors) -> None:
    """Refuse a version of the harness that is not out yet, and seconds that no work takes."""
    harness, seconds, metadata = subset.get("harness"), subset.get("seconds"), subset.get("metadata")
    if harness is not None and not _is_released(harness):
        hint = "type `pip install --upgrade retrieval-bench` if there is one"
        errors.add(RESULT, f"retrieval-bench {shown(str(harness)[:40])}", f"at most {_INSTALLED}", hint)
    times = [*(seconds if isinstance(seconds, dict) else {"seconds": seconds}).items()]
    for stage, counted in metadata.items() if isinstance(metadata, dict) else ():
        times += [(stage, counted["seconds"])] if isinstance(counted, dict) and "seconds" in counted else []
    for stage, spent in times:
        if spent is not None and not (type(spent) in (int, float) and 0 <= spent < _CENTURY):
            fault = f"{shown(str(spent)[:40])} seconds of {shown(str(stage)[:40])}"
            errors.add(RESULT, fault, "0 or more for each stage, less than a century", TAKE_UNCHANGED)


def _is_released(harness: object) -> bool:
    """Return whether a result's version of the harness is one, and not newer than the installed one."""
    try:
        return Version(str(harness)).release <= Version(_INSTALLED).release
    except InvalidVersion:
        return False


def check_averages(candidate: Candidate, installed: Suite | str, errors: ValidationErrors) -> None:
    """Check the suite's names and averages against the installed suite; without one, only averages of subsets."""
    content = candidate.content
    for task, subsets in content.tasks.items():
        if len({frozenset(subset.measures) for subset in subsets.values()}) > 1:
            errors.add(RESULT, f"subsets of {task} with different measures", "the same for all", TAKE_UNCHANGED)
            return
    if isinstance(installed, Suite):
        for name in ("title", "primary", "proxy_for", "parallel"):
            value, expected = getattr(content.suite, name), getattr(installed, name)
            if value != expected:
                as_installed = f"{expected!r}, as suite {content.suite.name} has it"
                errors.add(RESULT, f"suite {name} {shown(value)}", as_installed)
    tasks = {
        task: {name: {"measures": subset.measures} for name, subset in subsets.items()}
        for task, subsets in content.tasks.items()
    }
    macros = installed.macros if isinstance(installed, Suite) else ()
    recomputed = {str(average["name"]): average["measures"] for average in averages(tasks, macros)}
    submitted = {average.name: average.measures for average in content.macro}
    if len(submitted) != len(content.macro):
        errors.add(RESULT, "two averages of one name", "each once", TAKE_UNCHANGED)
    for name in sorted(recomputed.keys() - submitted.keys()):
        errors.add(RESULT, f"no average {shown(name)}", "every average whose tasks are there", TAKE_UNCHANGED)
    for name, values in submitted.items():
        if name not in recomputed and isinstance(installed, Suite):
            errors.add(
                RESULT, f"an average {shown(name)}", f"those of suite {content.suite.name} alone", TAKE_UNCHANGED
            )
        for measure in sorted(values.keys() | recomputed[name].keys()) if name in recomputed else ():
            value, expected = values.get(measure), recomputed[name].get(measure)
            if value is None or expected is None or abs(value - expected) > TOLERANCE:
                fault = f"{shown(measure)} of the average {shown(name)} = {value}"
                errors.add(RESULT, fault, f"{expected}, the mean of its members", TAKE_UNCHANGED)
