"""What a result says of itself: keys that a run writes and no others, and claims that fit each other.

None of it can be proven from the files. It can only be refused where one claim contradicts another.
"""

import re
from collections.abc import Collection

from bench.core.files import digest
from bench.data.formats.faults import shown
from bench.evaluation.results import RESULT, averages
from bench.evaluation.results.format import About, Average, Content, Leg, Remote, Setting, SuiteAbout
from bench.evaluation.results.identity import identity_error
from leaderboard.submissions.bundle import TAKE_UNCHANGED, Candidate, ValidationErrors
from leaderboard.submissions.recompute import TOLERANCE, InstalledSuite

MOST_SETTINGS = 1_000
"""Settings of a system, or of a leg; the largest config of ours has some sixty."""
_UNHASHED = frozenset({"label", "hash", "deterministic", "grid", "tuning", "settings"})
"""What a result without a graph says of a system besides the choices that its hash is made of."""
_STATED = frozenset({"graph", "untuned_hash", "config", "contract", "similarity", "read_by", "fuse"})
_SYSTEM = frozenset(About.model_fields) | _UNHASHED | _STATED
_LEG = frozenset(Leg.model_fields) | {"resolved", "harness", "compute", "seconds", "tunings", "audits"}
_ABSENT = object()
_SETTING = frozenset(Setting.model_fields) | {"default", "source"}


def check_metadata(candidate: Candidate, methods: Collection[str], errors: ValidationErrors) -> None:
    """Refuse keys that no run writes, a result without those that other commands read, and claims that do not fit.

    Args:
        candidate: the submitted result.
        methods: names of the installed methods; a label that begins with one must be of it.
        errors: receives every contradiction.
    """
    content = candidate.raw_content
    legs = [leg for by_leg in content["tasks"].values() for leg in by_leg.values()]
    settings = [setting for part in (content["system"], *legs) for setting in part.get("settings", ())]
    for part, keys, name in (
        (content, {*Content.model_fields, "schema", "seal"}, "the result"),
        (content["system"], _SYSTEM, "system"),
        (content["suite"], set(SuiteAbout.model_fields), "suite"),
        *((average, set(Average.model_fields), "macro") for average in content["macro"]),
        *((remote, set(Remote.model_fields), "remote") for remote in content.get("remote", {}).values()),
        *((leg, _LEG, "tasks") for leg in legs),
        *((setting, _SETTING, "settings") for setting in settings),
    ):
        if unknown := sorted(part.keys() - keys):
            errors.add(RESULT, f"the unknown key {shown(unknown[0])} in {name}", "known keys", TAKE_UNCHANGED)
    for part, key, kind in ((content["system"], "deterministic", bool), *((leg, "keys", dict) for leg in legs)):
        if not isinstance(part.get(key), kind):
            errors.add(RESULT, f"no `{key}`", f"`{key}` as every run writes it", TAKE_UNCHANGED)
    for part in (content["system"], *legs):
        if len(part.get("settings", ())) > MOST_SETTINGS:
            errors.add(RESULT, f"{len(part['settings']):,} settings", f"at most {MOST_SETTINGS:,}", TAKE_UNCHANGED)
    _check_system(candidate, methods, errors)
    measures = {name for leg in legs for name in leg["measures"]}
    if (primary := candidate.content.suite.primary) not in {None, *measures}:
        errors.add(RESULT, f"the headline measure {shown(primary)}", "one that a task has", TAKE_UNCHANGED)


def _check_system(candidate: Candidate, methods: Collection[str], errors: ValidationErrors) -> None:
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
    if candidate.content.seed and raw.get("deterministic") is True:
        errors.add(RESULT, f"seed {candidate.content.seed} of a deterministic system", "seed 0", TAKE_UNCHANGED)
    least = 0 if "@init" in label else 1
    budgets = [(system.budget, system.budget_flops, system.budget_steps)]
    budgets += [(part.budget, part.budget_flops, part.budget_steps) for part in system.parts]
    for tokens, flops, steps in budgets:
        if tokens is not None and tokens < least and not (flops or steps):
            errors.add(RESULT, f"a budget of {tokens:,} tokens", f"at least {least}", TAKE_UNCHANGED)
        if flops is not None and not flops >= 1:
            errors.add(RESULT, f"a budget of {flops:g} operations", "at least 1", TAKE_UNCHANGED)
    tuned = any(leg.get("tunings") for legs in candidate.raw_content["tasks"].values() for leg in legs.values())
    choices = {key: value for key, value in raw.items() if key not in _UNHASHED}
    if "graph" not in raw and not tuned and digest(choices) != system.hash:  # as runs wrote it before there were graphs
        expected = f"{digest(choices)[:12]}…, the digest of what the result says of it, or the system's `graph`"
        errors.add(RESULT, f"the hash {system.hash[:12]}… of the system", expected, TAKE_UNCHANGED)
    if unlike := identity_error(candidate.raw_content):
        errors.add(RESULT, unlike, "one system, with one encoder for all its tasks", TAKE_UNCHANGED)
    for setting in system.settings:
        value = raw.get("config")
        for part in setting.key.removeprefix("method.").split("."):
            value = value.get(part, _ABSENT) if isinstance(value, dict) else _ABSENT
        if setting.key.startswith("method.") and value is not _ABSENT and value != setting.value:
            fault = f"setting {shown(setting.key)} = {shown(str(setting.value)[:80])}"
            errors.add(RESULT, fault, f"{shown(str(value)[:80])}, as the system's `config` has it", TAKE_UNCHANGED)


def check_averages(candidate: Candidate, installed: InstalledSuite | str, errors: ValidationErrors) -> None:
    """Check the suite's names and averages against the installed suite; without one, only averages of legs."""
    content = candidate.content
    for task, legs in content.tasks.items():
        if len({frozenset(leg.measures) for leg in legs.values()}) > 1:
            errors.add(RESULT, f"legs of {task} with different measures", "the same for all", TAKE_UNCHANGED)
            return
    if isinstance(installed, InstalledSuite):
        for name in ("title", "primary", "stands_for", "parallel"):
            value, expected = getattr(content.suite, name), getattr(installed, name)
            if value != expected and not (name in ("primary", "parallel") and not value):  # older results lack them
                as_installed = f"{expected!r}, as suite {content.suite.name} has it"
                errors.add(RESULT, f"suite {name} {shown(value)}", as_installed)
    tasks = {
        task: {name: {"measures": leg.measures} for name, leg in legs.items()} for task, legs in content.tasks.items()
    }
    macros = installed.macros if isinstance(installed, InstalledSuite) else ()
    recomputed = {str(average["name"]): average["measures"] for average in averages(tasks, macros)}
    submitted = {average.name: average.measures for average in content.macro}
    if len(submitted) != len(content.macro):
        errors.add(RESULT, "two averages of one name", "each once", TAKE_UNCHANGED)
    for name in sorted(recomputed.keys() - submitted.keys()):
        errors.add(RESULT, f"no average {shown(name)}", "every average whose tasks are there", TAKE_UNCHANGED)
    for name, values in submitted.items():
        if name not in recomputed and isinstance(installed, InstalledSuite):
            errors.add(
                RESULT, f"an average {shown(name)}", f"those of suite {content.suite.name} alone", TAKE_UNCHANGED
            )
        for measure in sorted(values.keys() | recomputed[name].keys()) if name in recomputed else ():
            value, expected = values.get(measure), recomputed[name].get(measure)
            if value is None or expected is None or abs(value - expected) > TOLERANCE:
                fault = f"{shown(measure)} of the average {shown(name)} = {value}"
                errors.add(RESULT, fault, f"{expected}, the mean of its members", TAKE_UNCHANGED)
