"""What a promise is, and how pytest tries it: a trial, and a sentence where it fails."""

import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bench.core.errors import BenchError, UsageError
from bench.core.installed import reinstall

if TYPE_CHECKING:
    import pytest

State = Literal["kept", "broken", "not applicable"]
_STATES: dict[str, State] = {"passed": "kept", "failed": "broken", "skipped": "not applicable"}
"""By the outcome of a pytest report."""
_PYTEST = (
    *("--capture=no", "--assert=plain", "--noconftest", "--import-mode=importlib", "-c", os.devnull),
    *(
        part
        for name in ("terminal", "cacheprovider", "warnings", "logging", "faulthandler", "unraisableexception")
        for part in ("-p", f"no:{name}")
    ),
)
"""Options under which no setting of the user's reaches the trials, and nothing is printed or written.

Without `unraisableexception`, which collects garbage twice for each trial and would report nothing where warnings are
off.
"""


class BrokenPromiseError(BenchError):
    """A promise that a plugin breaks; the message says what was found and what was expected."""


class NotApplicableError(Exception):
    """A promise that this plugin does not make; the message says why."""


@dataclass(frozen=True)
class Check:
    """One promise and its trial.

    Attributes:
        name: short, e.g. `same-seed-same-bytes`.
        promise: what a plugin promises, in a sentence.
        remedy: what the author of a plugin that breaks it does.
        body: subject → what was left out, if something was. It raises `BrokenPromiseError` or `NotApplicableError`;
            whatever else it raises breaks the promise too.
    """

    name: str
    promise: str
    remedy: str
    body: Callable[[Any], str | None]


def promise(name: str, sentence: str, remedy: str) -> Callable[[Callable[[Any], str | None]], Check]:
    """Return a decorator that makes a check of its trial; the arguments are the fields of `Check`."""
    return lambda body: Check(name, sentence, remedy, body)


@dataclass(frozen=True)
class Verdict:
    """How the trial of a promise ended."""

    check: Check
    state: State
    reason: str  # why, where the promise was not kept or not wholly tried
    seconds: float
    remedy: str  # what the author does: the check's, or where the cause is known that of the cause

    def as_json(self) -> dict[str, Any]:
        """Return a row of `bench plugin check --json`."""
        row = {"name": self.check.name, "promise": self.check.promise, "state": self.state, "reason": self.reason}
        return {**row, "remedy": self.remedy, "seconds": round(self.seconds, 3)}


def try_promises(
    checks: Sequence[Check], subject: Any, report: Callable[[Verdict], object] | None = None
) -> list[Verdict]:
    """Try promises by pytest, in this process, whatever settings of pytest the working folder or environment has.

    Args:
        checks: the promises.
        subject: what they are tried on.
        report: called with each verdict when its trial ends.

    Raises:
        UsageError: pytest is not installed.
    """
    try:
        import pytest
    except ModuleNotFoundError as error:
        hint = f"type: {reinstall('check')}"
        raise UsageError(found="no pytest", expected="pytest, which tries the promises", hint=hint) from error
    collector = _PromiseCollector(checks, subject, report)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_CURRENT_TEST"):
            patch.delenv(name, raising=False)
        module = Path(__file__).with_name("promises.py")
        # Without the second, pytest looks at every file and folder next to those above the module, as in site-packages.
        places = [f"--rootdir={module.parent}", f"--confcutdir={module.parent}"]
        status = pytest.main([*_PYTEST, *places, str(module)], plugins=[collector])
    if collector.interrupt is not None:
        raise collector.interrupt
    if len(collector.verdicts) < len(checks):
        raise BenchError(f"pytest ended with {status!r} after {len(collector.verdicts)} of {len(checks)} promises")
    return collector.verdicts


class _PromiseCollector:
    """A pytest plugin that gives `promises.test_promise` its cases and collects how they end."""

    def __init__(self, checks: Sequence[Check], subject: Any, report: Callable[[Verdict], object] | None) -> None:
        self.checks = {check.name: check for check in checks}
        self.subject, self.report = subject, report
        self.verdicts: list[Verdict] = []
        self.interrupt: BaseException | None = None

    def pytest_generate_tests(self, metafunc: "pytest.Metafunc") -> None:
        metafunc.parametrize("check", list(self.checks.values()), ids=list(self.checks))
        metafunc.parametrize("subject", [self.subject], ids=["subject"])

    def pytest_runtest_logreport(self, report: "pytest.TestReport") -> None:
        if report.when != "call":
            return
        metadata: dict[str, Any] = dict(report.user_properties)
        check, state = self.checks[metadata["check"]], _STATES[report.outcome]
        reason = metadata.get("reason", report.longreprtext)
        verdict = Verdict(check, state, reason, report.duration, metadata.get("remedy", check.remedy))
        self.verdicts.append(verdict)
        if self.report:
            self.report(verdict)

    def pytest_keyboard_interrupt(self, excinfo: "pytest.ExceptionInfo[BaseException]") -> None:
        self.interrupt = excinfo.value


def expect(condition: bool, sentence: str, remedy: str = "") -> None:
    """Raise `BrokenPromiseError` with a sentence unless a condition holds; `remedy` in place of the check's."""
    if not condition:
        raise BrokenPromiseError(sentence, hint=remedy)


def told(error: BaseException, module: str) -> str:
    """Return what an error says, behind the file and line of the last frame of a plugin's package, if there is one.

    Errors of ours stand alone: they say what was found and where.

    Args:
        error: as it was raised.
        module: of the plugin, e.g. `bench_mine.plugin`.
    """
    package, place = module.partition(".")[0], ""
    for frame, line in traceback.walk_tb(None if isinstance(error, BenchError) else error.__traceback__):
        if package and str(frame.f_globals.get("__name__", "")).partition(".")[0] == package:
            file = Path(frame.f_code.co_filename)
            place = f"{file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file}:{line}: "
    return f"{place}{type(error).__name__}: {error}"


def files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, by its path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def different(first: dict[str, bytes], second: dict[str, bytes]) -> list[str]:
    """Return the names of files that are not the same on both sides."""
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
