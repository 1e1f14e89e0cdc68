"""Plugins: one by one, each with its own fault; names that lead to one owner; imports that are really ours."""

import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, distributions
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench import plugins as plugins_module
from bench.config.base import Config, setting
from bench.core.errors import PluginError, UsageError
from bench.hookspecs import hookimpl
from bench.plugins import Plugins, load
from bench.testing import fields
from bench.types import Measure, Method, Preset, Suite

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "overlap"


class Good(Config):
    """A config that keeps every promise."""

    tau: float = setting(0.1, source="ours: a test", help="a number", gt=0)


class Sourceless(Config):
    """A config with a default that comes from nowhere."""

    tau: float = 0.1


class Outside(Config):
    """A config whose default breaks its own limit."""

    tau: float = setting(-1.0, source="ours: a test", help="a number", gt=0)


def nothing(*_: Any, **__: Any) -> Any:
    """Stand in for a function that these tests never call."""
    raise AssertionError("called")


METHOD = Method("some", "1", "A method.", "none", Good, nothing)
DESCRIPTION = "some", "1", "Some", "A suite.", "none", "none", ("english",), ("mini",)
SUITE = Suite(*DESCRIPTION, lambda _: ("sw",), nothing, None, (), "", nothing)
MEASURE = Measure("Foo", nothing, "none")


def plugin(name: str, **hooks: Any) -> ModuleType:
    """Return a module with marked hooks: a function as it is, a list as what the hook returns."""
    module = ModuleType(name)
    for hook, content in hooks.items():
        setattr(module, hook, hookimpl(content if callable(content) else lambda content=content: content))
    return module


def only(*plugins: object) -> Plugins:
    """Load these objects and no entry point."""
    return load({}, extra=plugins, entries=())


def reason(module: object) -> str:
    """Return why the only plugin is broken; nothing else may have come in."""
    plugins = only(module)
    (broken,) = plugins.broken
    assert (plugins.methods, plugins.suites, plugins.measures, plugins.loaded) == ({}, {}, {}, {})
    assert "Traceback" in broken.traceback
    return broken.reason


Install = Callable[[str, Mapping[str, str]], list[EntryPoint]]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install distributions: name, then entry point → its module's source, which knows `hookimpl` and `method`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    preamble = (
        "from dataclasses import replace\nfrom bench.hookspecs import hookimpl\nfrom bench.types import Method\n"
        "from bench.config.layers import Config\n"
        "def method(name): return Method(name, '1', 'A method.', 'none', Config, print)\n"
    )

    def make(name: str, modules: Mapping[str, str]) -> list[EntryPoint]:
        info = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{module} = {module}_module" for module in modules]
        (info / "entry_points.txt").write_text("\n".join(["[bench]", *lines]))
        for module, source in modules.items():
            (tmp_path / f"{module}_module.py").write_text(preamble + source)
            monkeypatch.delitem(sys.modules, f"{module}_module", raising=False)
        points = [point for distribution in distributions(path=[str(tmp_path)]) for point in distribution.entry_points]
        return [point for point in points if point.group == "bench"]

    return make


BRINGS = "@hookimpl\ndef bench_methods(): return [method({!r})]\n"


def test_a_sound_plugin_brings_what_it_brings() -> None:
    """Methods, suites and measures by their names, with their owner; an object with hooks may be a plugin."""
    plugins = only(plugin("mine", bench_methods=[METHOD], bench_suites=[SUITE], bench_measures=[MEASURE]))
    assert plugins.broken == ()
    assert plugins.method("some") is METHOD
    assert plugins.suite("some") is SUITE
    assert plugins.measures_by_name == {"Foo": MEASURE}
    assert plugins.methods["some"].owner == "given directly (mine)"
    assert plugins.loaded == {"mine": "given directly (mine)"}

    class Mine:
        @hookimpl
        def bench_methods(self) -> Iterable[Method]:
            yield METHOD

    assert only(Mine()).method("some") is METHOD


def test_names_are_forgiving_on_input_only() -> None:
    """Underscores and capitals find the canonical name; an unknown one is refused with near ones and all that exist."""
    plugins = only(plugin("mine", bench_methods=[replace(METHOD, name="auto-mlm")]))
    assert {plugins.method(name).name for name in ("auto-mlm", "auto_mlm", "Auto-MLM")} == {"auto-mlm"}
    assert list(plugins.methods) == ["auto-mlm"]
    plugins = only(plugin("mine", bench_methods=[replace(METHOD, name=name) for name in ("bm25", "crop")]))
    with pytest.raises(UsageError, check=fields(found="method 'bm52'", expected="bm25, crop", hint="bm25")):
        plugins.method("bm52")
    with pytest.raises(UsageError, check=fields(found="suite 'zzz'", expected="", hint="")):
        plugins.suite("zzz")


def test_an_entry_point_is_loaded_and_owned(install: Install) -> None:
    """By distribution and module; two of one module are one plugin; a malformed one of another package is broken."""
    (entry,) = install("some-dist", {"alpha": BRINGS.format("alpha")})
    assert load({}, entries=[entry]).methods["alpha"].owner == "some-dist (alpha_module)"
    plugins = load({}, entries=[entry, EntryPoint("again", entry.value, "bench")])
    assert (plugins.duplicates, plugins.broken, list(plugins.methods)) == ((), (), ["alpha"])
    plugins = load({}, entries=[EntryPoint("odd", "not a module!", "bench")])
    assert [broken.name for broken in plugins.broken] == ["odd"]


BREAKS = {
    "raise ImportError('no such library')": "ImportError: no such library",
    "import no_such_module": "ModuleNotFoundError: No module named 'no_such_module'",
    "import sys; sys.exit(3)": "it called sys.exit(3)",
    "def": "SyntaxError: invalid syntax",
    "1 / 0": "ZeroDivisionError: division by zero",
}


@pytest.mark.parametrize(("source", "words"), BREAKS.items())
def test_a_plugin_that_does_not_load_fails_only_itself(install: Install, source: str, words: str) -> None:
    """Its neighbour works; its own name raises the reason; another unknown name mentions it."""
    install("bad-dist", {"bad": source})
    plugins = load({}, entries=install("good-dist", {"good": BRINGS.format("good")}))
    (broken,) = plugins.broken
    assert (broken.name, broken.distribution) == ("bad", "bad-dist")
    assert broken.reason.startswith(words)
    assert "bad_module" in broken.traceback
    assert plugins.method("good").name == "good"
    with pytest.raises(PluginError) as broken_error:
        plugins.method("bad")
    assert str(broken_error.value).startswith(f"plugin bad of bad-dist is broken: {words}")
    with pytest.raises(UsageError) as unknown:
        plugins.method("other")
    assert f"It may belong to a plugin that is broken (bad of bad-dist: {words}" in str(unknown.value)


def test_a_hook_with_other_arguments_is_broken() -> None:
    """Pluggy's sentence names the argument that the hook does not have; Ctrl-C while one loads ends the command."""

    def bench_scored(results: object) -> None:
        raise AssertionError

    sentence = reason(plugin("mine", bench_scored=bench_scored))
    assert "bench_scored" in sentence
    assert "'results'" in sentence
    assert "\n" not in sentence

    def bench_methods() -> list[Method]:
        signal.raise_signal(signal.SIGINT)
        return []

    with pytest.raises(KeyboardInterrupt):
        only(plugin("mine", bench_methods=bench_methods))


def _raises() -> list[Method]:
    raise RuntimeError("out of order")


def _unmarked() -> ModuleType:
    module = plugin("mine", bench_suites=[SUITE])
    module.bench_methods = lambda: [METHOD]  # type: ignore[attr-defined]  # a module made by hand
    return module


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (plugin("mine", bench_metods=[METHOD]), "bench_metods is no hook; did you mean bench_methods"),
        (_unmarked(), "bench_methods lacks @bench.hookimpl"),
        (ModuleType("mine"), "it has no hook, expected at least one of bench_methods"),
        (plugin("mine", bench_methods=_raises), "RuntimeError: out of order"),
    ],
)
def test_hooks_that_would_never_be_called_or_raise(module: ModuleType, words: str) -> None:
    """Misspelt, unmarked (and so silently passed over), none at all; what a hook raises is the reason."""
    assert reason(module).startswith(words)


def with_task_names(value: Any) -> Suite:
    """Return a suite with what a type checker refuses."""
    return replace(SUITE, task_names=value)


METHOD_FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"name": "Auto_MLM"}, "Method Auto_MLM: is called 'Auto_MLM', expected lower-case letters"),
    ({"name": "-x"}, "Method -x: is called '-x'"),
    ({"version": " "}, "Method some: has the version ' ', expected text"),
    ({"regimes": ("zero-shot",)}, "Method some: names the regime 'zero-shot', expected one of uns"),
    ({"retriever": None}, "Method some: brings neither a retriever nor the config"),
    ({"retriever": 3}, "Method some: retriever is 3, expected a function"),
    ({"trainer": "json.dumps"}, "Method some: trainer is 'json.dumps', expected package.module:N"),
    ({"trainer": "json.no:It"}, "Method some: trainer is 'json.no:It', and there is no module json"),
    ({"trainer": "no.json:It"}, "Method some: trainer is 'no.json:It', and there is no module no"),
    ({"config": dict}, "Method some: config is <class 'dict'>, expected a subclass of bench.config.layers"),
    ({"config": Sourceless}, "Method some: tau names no source of its default; tau has no help line"),
    ({"config": Outside}, "Method some: tau is -1.0, expected a number > 0"),
    ({"presets": {"p": Preset({"tow": 1.0}, "", "")}}, "Method some: preset p: tow is no setting of Good"),
    ({"presets": {"p": Preset({}, "", "x" * 301)}}, "Method some: preset p: has a summary of 301 characters, expected"),
    ({"presets": {"p": Preset({"tau": 0}, "", "")}}, "Method some: preset p: tau is 0 (preset), expected a number > 0"),
]
FAULTS: list[tuple[str, object, str]] = [
    ("bench_methods", METHOD, "bench_methods returned Method("),
    ("bench_methods", "bm25", "bench_methods returned 'bm25', expected a list of Method"),
    ("bench_methods", [SUITE], "bench_methods returned Suite("),
    ("bench_methods", [METHOD, METHOD], "bench_methods returned some more than once"),
    *(("bench_methods", [replace(METHOD, **changes)], words) for changes, words in METHOD_FAULTS),
    ("bench_suites", [replace(SUITE, name="a b")], "Suite a b: is called 'a b'"),
    ("bench_suites", [replace(SUITE, data=())], "Suite some: serves no data"),
    (
        "bench_suites",
        [replace(SUITE, task_names=lambda _: ("a" * 65,))],
        "Suite some: task_names('mini') has a name of more than 64 characters",
    ),
    ("bench_suites", [with_task_names(lambda _: "sw")], "Suite some: task_names('mini') returned 'sw', exp"),
    ("bench_suites", [with_task_names(None)], "Suite some: task_names is None, expected a function"),
    ("bench_measures", [replace(MEASURE, name="Foo@10")], "Measure Foo@10: is called 'Foo@10', expected letters only"),
]


@pytest.mark.parametrize(("hook", "returned", "words"), FAULTS, ids=[words for _, _, words in FAULTS])
def test_a_broken_promise_is_the_reason(hook: str, returned: object, words: str) -> None:
    """A thing that the house cannot carry sets its plugin aside, with the reason."""
    assert reason(plugin("mine", **{hook: lambda: returned})).startswith(words)


def test_two_owners_of_a_name_are_both_named(install: Install) -> None:
    """Nobody gets the name; the rest of both plugins works."""
    install("first-dist", {"one": "@hookimpl\ndef bench_methods(): return [method('twin'), method('single')]\n"})
    plugins = load({}, entries=install("second-dist", {"two": BRINGS.format("twin")}))
    assert list(plugins.methods) == ["single"]
    (duplicate,) = plugins.duplicates
    assert (duplicate.kind, duplicate.name) == ("method", "twin")
    with pytest.raises(PluginError) as error:
        plugins.method("twin")
    assert "first-dist (one_module) and by second-dist (two_module)" in str(error.value)
    assert "BENCH_PLUGINS" in str(error.value)
    with pytest.raises(UsageError, check=fields(expected="single, twin")):
        plugins.method("other")


def test_bench_plugins_restricts(install: Install) -> None:
    """Of two with one name only the plugin that it names is imported: the other one would fail."""
    install("first-dist", {"one": "raise RuntimeError\n"})
    entries = install("second-dist", {"two": BRINGS.format("twin")})
    plugins = load({"BENCH_PLUGINS": "two"}, entries=entries)
    assert (list(plugins.methods), plugins.broken) == (["twin"], ())
    assert "one_module" not in sys.modules


def test_a_restriction_may_name_a_distribution_or_nothing(install: Install) -> None:
    """Spelling is forgiving; empty means none, and the message about a missing name says so; a typing error is one."""
    install("first-dist", {"one": BRINGS.format("one"), "also": BRINGS.format("also")})
    entries = install("second-dist", {"two": BRINGS.format("two")})
    assert sorted(load({"BENCH_PLUGINS": "First_Dist"}, entries=entries).methods) == ["also", "one"]
    assert sorted(load({"BENCH_PLUGINS": "also, two"}, entries=entries).methods) == ["also", "two"]
    plugins = load({"BENCH_PLUGINS": ""}, entries=entries)
    assert plugins.loaded == {}
    with pytest.raises(UsageError, match="BENCH_PLUGINS restricts plugins to: none"):
        plugins.method("one")
    entries = install("third-dist", {"one-long-name": BRINGS.format("one")})
    expected = fields(where="BENCH_PLUGINS=one-lung-name", found="plugin 'one-lung-name'", hint="one-long-name")
    with pytest.raises(UsageError, check=expected):
        load({"BENCH_PLUGINS": "one-lung-name"}, entries=entries)


def test_a_tracker_that_raises_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """The others hear, and one warning names the plugin and the hook."""
    results: list[object] = []

    def raises(result: Mapping[str, Any]) -> None:
        raise RuntimeError(f"no network for {result['n']}")

    def hears(result: Mapping[str, Any]) -> None:
        results.append(result)

    trackers = {"before": hears, "bad": raises, "after": hears}
    plugins = only(*(plugin(name, bench_scored=tracker) for name, tracker in trackers.items()))
    with caplog.at_level(logging.WARNING):
        plugins.notify("bench_scored", result={"n": 1})
    assert results == [{"n": 1}, {"n": 1}]
    assert [record.getMessage() for record in caplog.records] == [
        "plugin bad failed in bench_scored and is skipped: RuntimeError: no network for 1"
    ]
    with pytest.raises(RuntimeError, match="no network for 2"):
        plugins.hook.bench_scored(result={"n": 2})
    with pytest.raises(AttributeError, match="bench_skored"):
        plugins.notify("bench_skored", result={})


def test_a_tracker_that_would_end_the_run_is_named(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """By an interrupt that nobody typed, or at once; what it prints is no result."""

    def interrupts(result: object) -> None:
        sys.stdout.write("noise")
        raise KeyboardInterrupt

    def exits(result: object) -> None:
        os._exit(3)

    plugins = only(plugin("first", bench_scored=interrupts), plugin("second", bench_scored=exits))
    with caplog.at_level(logging.WARNING):
        plugins.notify("bench_scored", result={})
    assert sorted(record.getMessage() for record in caplog.records) == [
        "plugin first failed in bench_scored and is skipped: KeyboardInterrupt",
        "plugin second failed in bench_scored and is skipped: it called os._exit",
    ]
    assert capsys.readouterr().out == ""


def test_a_broken_plugin_is_said_whatever_is_typed(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    """So is a name that two plugins bring; names of distributions and plugins are printable."""
    install("bad-dist", {"bad": "raise ValueError('no')"})
    entries = install("good-dist", {"good": BRINGS.format("twin"), "also": BRINGS.format("twin")})
    entries += [EntryPoint("a\x1b[2Jb", "no_such_module", "bench")]
    with caplog.at_level(logging.WARNING):
        (odd, _) = load({}, entries=entries).broken
    assert odd.name == "a[U+001B][2Jb"
    said = sorted(record.getMessage() for record in caplog.records)
    assert said[1:] == [
        f"plugin {odd.name} of an unknown distribution is broken: {odd.reason}",
        "plugin bad of bad-dist is broken: ValueError: no",
    ]
    assert said[0].startswith("method twin is brought by good-dist (also_module) and by good-dist (good_module)")


def test_our_own_plugins_are_sound() -> None:
    """They come in by the door that everybody uses; listings show both of two plugins of one name."""
    plugins = load({})
    assert [broken for broken in plugins.broken if broken.distribution == "retrieval-bench"] == []
    assert plugins.methods["bm25"].owner == "retrieval-bench (methods.bm25)"
    assert plugins.suites["beir"].owner == "retrieval-bench (suites.beir)"
    twins = only(plugin("mine", bench_methods=[METHOD]), plugin("mine", bench_measures=[MEASURE]))
    assert list(twins.loaded) == ["mine", "mine of given directly"]


def test_ours_are_vetted_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded again next to another's, only the other's hooks are looked at."""
    theirs, real = plugin("theirs", bench_methods=[METHOD]), plugins_module._check_hooks
    first = load(extra=[theirs])
    looked_at: list[object] = []

    def noted(plugin: object, manager: Any) -> None:
        looked_at.append(plugin)
        real(plugin, manager)

    monkeypatch.setattr(plugins_module, "_check_hooks", noted)
    second = load(extra=[theirs])
    assert looked_at == [theirs]
    assert (second.methods, second.suites) == (first.methods, first.suites)
    assert len(second.loaded) > 20
