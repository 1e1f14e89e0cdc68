"""The conformance kit: what every plugin promises, tried one by one — by `bench plugin check NAME`, or by pytest.

In a package of your own, one line makes a test of every promise::

    from bench.testing import conformance

    test_conformance = conformance("my-method")

A method with an encoder is trained for a few steps on a planted corpus, killed, resumed, encoded with; a retriever
indexes and searches; a suite's mini data are read. Nothing is downloaded, and everything runs on the processor.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.core.errors import UsageError
from bench.core.messages import canonical, unknown_name
from bench.plugins import Plugins, load
from bench.studies.conformance.kit import BrokenPromiseError, Check, NotApplicableError, Verdict, try_promises
from bench.studies.conformance.light import CHECKS as LIGHT
from bench.studies.conformance.light import light_import
from bench.types import DataRequest, Method

__all__ = ["BrokenPromiseError", "Check", "NotApplicableError", "Verdict", "checks_for", "conformance", "run"]

MINI = DataRequest("mini")


def checks_for(name: str, plugins: Plugins | None = None) -> tuple[Check, ...]:
    """Return the promises of a method or suite, in order. Raises as `Plugins.method` does for an unknown name."""
    plugins, key = plugins or load(), canonical(name)
    if key in plugins.suites:
        from bench.studies.conformance import suites

        return (light_import, *suites.CHECKS)
    unusable = {canonical(plugin.name) for plugin in plugins.broken} | {item.name for item in plugins.duplicates}
    if key not in plugins.methods and key not in unusable and not plugins.broken:
        raise unknown_name("method or suite", name, sorted([*plugins.methods, *plugins.suites]))
    return _checks_and_subject(plugins.method(name))[0]


def run(
    name: str,
    folder: Path,
    *,
    sets: Sequence[str] = (),
    only: Sequence[str] = (),
    learn_tokens: int | None = None,
    plugins: Plugins | None = None,
    data: DataRequest = MINI,
    report: Callable[[Verdict], object] | None = None,
) -> list[Verdict]:
    """Try the promises of a method or suite one by one.

    Args:
        name: of the method or suite.
        folder: an empty one for what the trials write; the caller removes it.
        sets: `KEY=VALUE` settings under which a method is tried, as for `bench run --set`.
        only: names of checks; default: all.
        learn_tokens: the budget of the training that is to learn; default: that of the kit.
        plugins: default: those that are installed.
        data: what a suite is tried on.
        report: called with each verdict when its trial ends.

    Raises:
        UsageError: an unknown name of a method, suite or check, or no pytest.
        ConfigError: settings that do not hold.
        PluginError: a broken plugin.
    """
    plugins = plugins or load()
    checks = _select(checks_for(name, plugins), only)
    return try_promises(checks, _subject(name, folder, tuple(sets), plugins, learn_tokens, data), report)


def conformance(
    name: str, sets: Sequence[str] = (), only: Sequence[str] = (), learn_tokens: int | None = None
) -> Callable[..., None]:
    """Return a pytest test with a case for each promise, to be called `test_…`.

    Example:
        >>> test_conformance = conformance("bm25", only=["light-import"])

    Args:
        name: of the method or suite.
        sets: `KEY=VALUE` settings of a method.
        only: names of checks; default: all.
        learn_tokens: the budget of the training that is to learn; default: that of the kit.

    Raises:
        UsageError: and the other errors of `run`.
    """
    import pytest

    from bench.studies.conformance.promises import test_promise

    plugins = load()
    checks = _select(checks_for(name, plugins), only)
    subjects: list[Any] = []

    @pytest.mark.parametrize("check", checks, ids=[check.name for check in checks])
    def test(
        check: Check, tmp_path_factory: pytest.TempPathFactory, record_property: Callable[[str, object], None]
    ) -> None:
        if not subjects:  # what the trials make is shared
            folder = tmp_path_factory.mktemp("conformance")
            subjects.append(_subject(name, folder, tuple(sets), plugins, learn_tokens))
        test_promise(check, subjects[0], record_property)

    return test


def _checks_and_subject(method: Method) -> tuple[tuple[Check, ...], type[Any]]:
    """Return the promises of a method, and the class of what they are tried on."""
    from bench.studies.conformance import encoding, retrieval, training, trial

    if method.encoder is not None:
        return (*LIGHT, *encoding.ENCODER_CHECKS), encoding.EncoderSubject
    if method.encoder_config is None:
        return (*LIGHT, *retrieval.CHECKS), retrieval.RetrieverSubject
    checks = (*LIGHT, *(training.CHECKS if method.trainer is not None else ()), *encoding.CHECKS)
    if method.searches_vectors:
        return checks, trial.DenseSubject
    return (*checks, *retrieval.TRAINED_CHECKS), retrieval.TrainedRetrieverSubject


def _select(checks: Sequence[Check], only: Sequence[str]) -> tuple[Check, ...]:
    names = [check.name for check in checks]
    for name in only:
        if name not in names:
            raise unknown_name("check", name, names)
    return tuple(check for check in checks if not only or check.name in only)


def _subject(
    name: str, folder: Path, sets: tuple[str, ...], plugins: Plugins, learn_tokens: int | None, data: DataRequest = MINI
) -> Any:
    """Return what the promises are tried on. Raises as `run` does, for settings that do not hold."""
    key = canonical(name)
    if key in plugins.suites:
        if sets:
            raise UsageError(
                where=f"suite {name}", found=f"--set {sets[0]}", expected="no settings", hint="leave it out"
            )
        from bench.studies.conformance.suites import SuiteSubject

        owned = plugins.suites[key]
        return SuiteSubject(owned.value, owned.module, folder, plugins.measures_by_name, data)
    method = plugins.method(name)
    learns = (learn_tokens,) if learn_tokens and method.encoder_config is not None else ()
    subject = _checks_and_subject(method)[1](method, plugins.methods[key].module, folder, sets, *learns)
    assert subject.resolved  # noqa: S101 (settings that do not hold are reported now, not by every check)
    return subject
