"""What a result says of itself: keys that a run writes and no others, and claims that fit each other.

None of it can be proven from the files. It can only be refused where one claim contradicts another.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from bench.core.files import digest
from bench.data.formats.faults import shown
from bench.evaluation.results import RESULT
from bench.evaluation.results.format import About, Average, Content, Leg, Remote, Setting, SuiteAbout
from leaderboard.submissions.bundle import AGAIN, Candidate, Reasons

MOST_SETTINGS = 1_000
"""Settings of a system, or of a leg; the largest config of ours has some sixty."""
_APART = frozenset({"label", "hash", "deterministic", "grid", "tuning", "settings"})
"""What a result says of a system besides the choices that its hash is made of."""
_SYSTEM = frozenset(About.model_fields) | _APART | {"config", "contract", "similarity", "read_by", "fuse"}
_LEG = frozenset(Leg.model_fields) | {"resolved", "harness", "compute", "seconds", "tunings", "audits"}
_SETTING = frozenset(Setting.model_fields) | {"default", "source"}


def check_claims(found: Candidate, methods: Collection[str], reasons: Reasons) -> None:
    """Check what a result says of itself; `methods` are the names of those that are installed."""
    _keys(found.whole, reasons)
    _system(found, methods, reasons)
    content = found.content
    measures = {name for legs in content.tasks.values() for leg in legs.values() for name in leg.measures}
    if content.suite.primary not in {None, *measures}:
        reasons.add(RESULT, f"the headline measure {shown(content.suite.primary)}", "one that a task has", AGAIN)


def _keys(whole: Mapping[str, Any], reasons: Reasons) -> None:
    """Refuse keys that no run writes, and a result without those that other commands read."""
    legs = [leg for parts in whole["tasks"].values() for leg in parts.values()]
    settings = [row for one in (whole["system"], *legs) for row in one.get("settings", ())]
    for part, known, where in (
        (whole, {*Content.model_fields, "schema", "seal"}, ""),
        (whole["system"], _SYSTEM, "system"),
        (whole["suite"], set(SuiteAbout.model_fields), "suite"),
        *((one, set(Average.model_fields), "macro") for one in whole["macro"]),
        *((one, set(Remote.model_fields), "remote") for one in whole.get("remote", {}).values()),
        *((one, _LEG, "tasks") for one in legs),
        *((one, _SETTING, "settings") for one in settings),
    ):
        if strange := sorted(part.keys() - known):
            reasons.add(RESULT, f"the unknown key {shown(strange[0])} in {where or 'the result'}", "known keys", AGAIN)
    for part, name, kind in ((whole["system"], "deterministic", bool), *((leg, "keys", dict) for leg in legs)):
        if not isinstance(part.get(name), kind):
            reasons.add(RESULT, f"no `{name}`", f"`{name}` as every run writes it", AGAIN)
    for part in (whole["system"], *legs):
        if len(part.get("settings", ())) > MOST_SETTINGS:
            reasons.add(RESULT, f"{len(part['settings']):,} settings", f"at most {MOST_SETTINGS:,}", AGAIN)


def _system(found: Candidate, methods: Collection[str], reasons: Reasons) -> None:
    """Check label, method, hash, settings, seed and budget against each other."""
    about, whole = found.content.system, found.whole["system"]
    if not (about.label.isascii() and about.label.isprintable() and " ".join(about.label.split()) == about.label):
        hint = "letters that look like others make two systems look like one; choose a name by --label"
        reasons.add(RESULT, f"the label {about.label[:80]!a}", "printable ASCII, single blanks inside", hint)
    name, method = (_first(one) for one in (about.label, about.method))
    if name in methods and name != method:
        reasons.add(RESULT, f"the label {shown(about.label)} of method {shown(about.method)}", f"method {name}", AGAIN)
    if found.content.seed and whole.get("deterministic") is True:
        reasons.add(RESULT, f"seed {found.content.seed} of a deterministic system", "seed 0", AGAIN)
    least = 0 if "@init" in about.label else 1
    budgets = [(about.budget, about.budget_flops, about.budget_steps)]
    budgets += [(one.budget, one.budget_flops, one.budget_steps) for one in about.parts]
    for tokens, flops, steps in budgets:
        if tokens is not None and tokens < least and not (flops or steps):
            reasons.add(RESULT, f"a budget of {tokens:,} tokens", f"at least {least}", AGAIN)
        if flops is not None and not flops >= 1:
            reasons.add(RESULT, f"a budget of {flops:g} operations", "at least 1", AGAIN)
    tuned = any(leg.get("tunings") for legs in found.whole["tasks"].values() for leg in legs.values())
    choices = {key: value for key, value in whole.items() if key not in _APART}
    if not tuned and digest(choices) != about.hash:  # that of a tuned system is made of its tunings, too
        expected = f"{digest(choices)[:12]}…, the digest of what the result says of it"
        reasons.add(RESULT, f"hash {about.hash[:12]}… of the system", expected, AGAIN)
    for row in about.settings:
        known, value = _at(whole.get("config"), row.key.removeprefix("method."))
        if row.key.startswith("method.") and known and value != row.value:
            found_ = f"setting {shown(row.key)} = {shown(str(row.value)[:80])}"
            reasons.add(RESULT, found_, f"{shown(str(value)[:80])}, as the system's `config` has it", AGAIN)


def _first(name: str) -> str:
    """Return the method that a label or the name of a fused method begins with."""
    return re.split(r"[@+]", name)[0]


def _at(config: Any, key: str) -> tuple[bool, Any]:
    """Return whether a config has a dotted key, and its value there."""
    for part in key.split("."):
        if not isinstance(config, dict) or part not in config:
            return False, None
        config = config[part]
    return True, config
