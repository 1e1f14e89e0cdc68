"""The conformance kit: what every plugin promises, tried one by one — by `bench plugin check NAME`, or by pytest.

In a package of your own, one line makes a test of every promise::

    from bench.testing import conformance

    test_conformance = conformance("my-method")

A method with an encoder is trained for a few steps on a planted corpus, killed, resumed, encoded with; a retriever
indexes and searches; a suite's mini data are read. Nothing is downloaded, and everything runs on the processor.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.core.errors import UsageError
from bench.core.messages import canonical, unknown_name
from bench.plugins import Plugins, load
from bench.studies.conformance.kit import BrokenPromiseError, Check, NotApplicableError, Verdict, carry_out
from bench.studies.conformance.light import CHECKS as LIGHT
from bench.studies.conformance.light import light_import
from bench.types import DataRequest, Method

__all__ = ["BrokenPromiseError", "Check", "NotApplicableError", "Verdict", "checks_for", "conformance", "run"]

MINI = DataRequest("mini")


def checks_for(name: str, plugins: Plugins | None = None) -> tuple[Check, ...]:
    """Return the promises of a method or suite, in order. Raises as `Plugins.method` does where nobody brings it."""
    found = plugins or load()
    if _is_suite(name, found):
        from bench.studies.conformance import suites

        return (light_import, *suites.CHECKS)
    return _kind(found.method(name))[0]


def _kind(method: Method) -> tuple[tuple[Check, ...], type[Any]]:
    """Return the promises of a method, and the class of what is on trial."""
    from bench.studies.conformance import encoding, retrieval, training, trial

    if method.encoder is not None:
        return (*LIGHT, *encoding.OWN_CHECKS), encoding.EncoderSubject
    if method.contract is None:
        return (*LIGHT, *retrieval.CHECKS), retrieval.RetrieverSubject
    checks = (*LIGHT, *(training.CHECKS if method.trainer is not None else ()), *encoding.CHECKS)
    if method.searches_vectors:
        return checks, trial.DenseSubject
    return (*checks, *retrieval.TRAINED_CHECKS), retrieval.TrainedRetrieverSubject


def run(
    name: str,
    folder: Path,
    *,
    sets: Sequence[str] = (),
    only: Sequence[str] = (),
    learn_tokens: int | None = None,
    plugins: Plugins | None = None,
    data: DataRequest = MINI,
) -> Iterator[Verdict]:
    """Try the promises of a method or suite one by one, in an empty folder that the caller removes.

    `sets` are `KEY=VALUE` settings under which a method is tried, as for `bench run --set`; `only` names checks, none
    for all; `learn_tokens` is the budget of the training that is to learn, None for that of the kit; `plugins` are by
    default those that are installed; `data` is what a suite is tried on. Raises `UsageError` for an unknown name of a
    method, suite or check, `ConfigError` for settings that do not hold, `PluginError` for a broken plugin.
    """
    found = plugins or load()
    checks = _chosen(checks_for(name, found), only)
    subject = _subject(name, folder, tuple(sets), found, learn_tokens, data)
    for check in checks:
        yield carry_out(check, subject)


def conformance(
    name: str, sets: Sequence[str] = (), only: Sequence[str] = (), learn_tokens: int | None = None
) -> Callable[..., None]:
    """Return a pytest test with one case a promise, to be called `test_…`; arguments and errors are those of `run`."""
    import pytest

    plugins = load()
    checks = _chosen(checks_for(name, plugins), only)
    made: list[Any] = []

    @pytest.mark.parametrize("check", checks, ids=[check.name for check in checks])
    def test(check: Check, tmp_path_factory: pytest.TempPathFactory) -> None:
        if not made:
            folder = tmp_path_factory.mktemp("conformance")
            made.append(_subject(name, folder, tuple(sets), plugins, learn_tokens))
        verdict = carry_out(check, made[0])
        if verdict.state == "not applicable":
            pytest.skip(verdict.reason)
        if verdict.state == "broken":
            pytest.fail(f"{check.promise}: {verdict.reason}\nwhat to do: {verdict.remedy}", pytrace=False)

    return test


def _is_suite(name: str, plugins: Plugins) -> bool:
    """Return whether a name is a suite's. Raises `UsageError` where nothing, broken plugins included, has the name."""
    wanted = canonical(name)
    if wanted in plugins.suites:
        return True
    meant = {canonical(one.name) for one in plugins.broken} | {one.name for one in plugins.duplicates}
    if wanted not in plugins.methods and wanted not in meant and not plugins.broken:
        raise unknown_name("method or suite", name, sorted([*plugins.methods, *plugins.suites]))
    return False


def _chosen(checks: Sequence[Check], only: Sequence[str]) -> tuple[Check, ...]:
    names = [check.name for check in checks]
    for name in only:
        if name not in names:
            raise unknown_name("check", name, names)
    return tuple(check for check in checks if not only or check.name in only)


def _subject(
    name: str, folder: Path, sets: tuple[str, ...], plugins: Plugins, learn_tokens: int | None, data: DataRequest = MINI
) -> Any:
    """Return what the checks are given. Raises as `run` does, for settings that do not hold."""
    wanted = canonical(name)
    if wanted in plugins.suites:
        if sets:
            raise UsageError(
                where=f"suite {name}", found=f"--set {sets[0]}", expected="no settings", hint="leave it out"
            )
        from bench.studies.conformance.suites import SuiteSubject

        owned = plugins.suites[wanted]
        return SuiteSubject(owned.value, owned.module, folder, plugins.measures_by_name, data)
    method = plugins.method(name)
    learns = (learn_tokens,) if learn_tokens and method.contract is not None else ()
    subject = _kind(method)[1](method, plugins.methods[wanted].module, folder, sets, *learns)
    assert subject.resolved  # noqa: S101 (settings that do not hold are reported now, not by every check)
    return subject
