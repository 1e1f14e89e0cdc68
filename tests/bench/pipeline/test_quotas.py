"""Quotas that profiles set: from the largest budget of an experiment on a named corpus, one for all of its systems."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.config.profiles import profile
from bench.config.request import Request, RequestVariant
from bench.core.errors import ConfigError
from bench.core.files import unread
from bench.core.network import offline
from bench.data.corpora.named import CorpusPart, NamedCorpus
from bench.pipeline.experiment import largest_quotas, pretrainings
from bench.pipeline.plan import plan
from bench.pipeline.publish import _settings
from bench.pipeline.quotas import budget_tokens, prepared_tokens, quota, text_bytes
from bench.pipeline.settings import resolve
from bench.pipeline.stages.prepare import Prepare
from bench.plugins import Plugins
from bench.store.store import Store
from bench.studies import sweep
from bench.types import PretrainingCorpus

C4 = "c4:en"
SMALL = {"profile": "small", "devices": "A100", "corpus": C4}


def part(languages: Mapping[str, float | None], *chosen: str, ending: str = ".gz") -> CorpusPart:
    corpus = PretrainingCorpus("a", "", "", languages=languages, urls=(f"https://example.org/{{language}}{ending}",))
    return CorpusPart(corpus, chosen or tuple(languages))


def preparations(
    plugins: Plugins, store: Path, methods: str, *variants: dict[str, Any], **options: Any
) -> dict[str, list[tuple[int | None, str]]]:
    """Quota and key of the prepared corpora of a request, by the title of each training on them."""
    named = tuple(RequestVariant(name, variant) for name, variant in zip("abc", variants, strict=False))
    request = replace(Request.from_options(methods, **{**SMALL, **options}), variants=named)
    found: dict[str, list[tuple[int | None, str]]] = {}
    with offline(), unread():
        quotas = largest_quotas(request.each().values(), plugins)
        for each in request.each().values():
            for stage in pretrainings(each, plugins, Store(store), quotas)[1]:
                if isinstance(corpus := stage.inputs.get("shards"), Prepare):
                    found.setdefault(stage.title, []).append((corpus.settings.quota, corpus.key))
    return found


def test_a_quota_by_hand() -> None:
    """Twice the budget times the largest share, up to two digits."""
    even, uneven = part({"de": 50e9, "en": 50e9}), part({"en": 8100e9, "sw": 100e9, "de": 900e9})
    assert quota([even], 100e6, 0.3, 2) == 100_000_000
    assert quota([uneven], 100e6, 1, 2) == 180_000_000, "2 · 100 M · 81/91 = 178,021,978"
    assert quota([uneven], 100e6, 0.5, 2) == 140_000_000, "2 · 100 M · 9/13 = 138,461,538"
    assert quota([uneven], 100e6, 0, 2) == 67_000_000, "2 · 100 M / 3 = 66,666,667"
    assert quota([uneven], 3.0, 0, 2) == 2
    assert quota([even], math.inf, 0.3, 2) is None
    unknown = part({"en": 300e9, "fi": 100e9, "sw": None})
    assert quota([unknown], 100e6, 1, 1) == 60_000_000, "a size that nobody states is the smallest that is stated"
    assert quota([part({"en": None, "sw": None})], 100e6, 1, 1) == 50_000_000


def test_a_small_corpus_has_no_quota() -> None:
    """Where no language has half as much by its stated size: 8.1 bytes a token, 2.6 bytes of text a byte of .gz."""
    half = 50e6 * 8.1 / 2.6
    assert quota([part({"en": 1.01 * half})], 50e6, 1, 2) == 100_000_000
    assert quota([part({"en": 0.99 * half})], 50e6, 1, 2) is None
    assert quota([part({"en": 0.5 * half, "sw": None})], 50e6, 1, 2) == 50_000_000, "nobody knows how much there is"


def test_sizes_of_languages() -> None:
    """Bytes of text by the ending, those of several parts together; nobody knows a sum with an unknown part."""
    parts = [part({"en": 10.0, "sw": 1.0}), part({"en": 5.0, "fi": None, "sw": None}, ending=".xz")]
    assert text_bytes(parts) == {"en": pytest.approx(26.0 + 22.0), "sw": None, "fi": None}
    one_file = PretrainingCorpus("b", "", "", languages={"de": 100.0, "en": 100.0}, urls=("https://example.org/all",))
    assert text_bytes([CorpusPart(one_file, ("de",))]) == {"de": 50.0}


def test_budgets_in_tokens(plugins: Plugins) -> None:
    """As they are; steps by the tokens of a step; operations by those of a token; nothing where nobody can say."""
    crop = resolve([plugins.method("crop")], profile=profile("small"))["crop"].method
    assert budget_tokens(crop, {"tokens": 7}, "", 1) == 7
    assert budget_tokens(crop, {"steps": 10}, "", 4) == 40 * crop.tokens_a_step()  # type: ignore[attr-defined]
    flops = budget_tokens(crop, {"flops": 1e15}, "FacebookAI/xlm-roberta-base", 1)
    assert 0.5 < flops / (1e15 / (6 * 85_054_464)) < 1, "six a weight and token; attention and heads come on top"
    assert budget_tokens(crop, {"flops": 1e15}, "nobody/knows", 1) == math.inf
    assert budget_tokens(None, {"steps": 10}, "", 1) == math.inf
    assert budget_tokens(crop, {"tokens": None}, "", 1) == math.inf


def test_systems_share_what_the_largest_budget_takes(plugins: Plugins, tmp_path: Path) -> None:
    """One language: twice the budget. Two methods and two budgets have one key; alone the smaller has another."""
    (one,) = preparations(plugins, tmp_path, "crop").values()
    assert [most for most, _ in one] == [400_000_000]
    half = {"sets": ("budget.tokens=100000000",)}
    both = preparations(plugins, tmp_path, "crop,msm", {}, half)
    assert {stage for stages in both.values() for stage in stages} == {*one}
    (alone,) = preparations(plugins, tmp_path, "crop", **half).values()
    assert [most for most, _ in alone] == [200_000_000]
    assert alone != one


def test_values_of_a_budget_share(plugins: Plugins, tmp_path: Path) -> None:
    """As `bench ablate --vary budget.tokens=…` makes them."""
    varied = (("budget.tokens=50000000",), ("budget.tokens=300000000",))
    found = preparations(plugins, tmp_path, "crop", varied=varied)
    assert {most for stages in found.values() for most, _ in stages} == {600_000_000}
    assert len({key for stages in found.values() for _, key in stages}) == 1


def test_a_quota_that_somebody_sets_is_kept(plugins: Plugins, tmp_path: Path) -> None:
    """A number, or nothing for the whole corpus; and of a folder or the embedded world none is set."""

    def quotas(**options: Any) -> set[int | None]:
        found = preparations(plugins, tmp_path / "store", "crop", **options)
        return {most for stages in found.values() for most, _ in stages}

    assert quotas(sets=("prepare.quota=5M",)) == {5_000_000}
    assert quotas(sets=("prepare.quota=",)) == {None}
    assert quotas(corpus="mini") == {None}
    own = tmp_path / "own"
    own.mkdir()
    (own / "en.txt").write_text("One.\n")
    assert quotas(corpus=str(own)) == {None}
    assert quotas(corpus=str(own), sets=("prepare.quota=5",)) == {5}
    assert quotas(profile="mini") == {None}, "a profile that says nothing of it"


@pytest.mark.parametrize("value", ["0", "-3", "many", "1.5", "true"])
def test_bad_quotas_are_refused(plugins: Plugins, tmp_path: Path, value: str) -> None:
    """In a sentence that says what is expected."""
    with pytest.raises(ConfigError, match=r"^prepare\.quota is .* \(--set\), expected a whole number ≥ 1, or nothing$"):
        preparations(plugins, tmp_path, "crop", sets=(f"prepare.quota={value}",))


def test_trials_of_a_sweep_share(plugins: Plugins, tmp_path: Path) -> None:
    """Whatever their pairs and exponents: one prepared corpus for all."""
    request = Request.from_options(
        "crop", "mrtydi", tasks="sw", profile="small", corpus=C4, device="cpu", data="official", data_dir=tmp_path
    )
    with offline(), unread():
        ready = sweep.prepare(request, 4, plugins, Store(tmp_path / "store"))
    stages = [step.stage for step in ready.plan.steps if isinstance(step.stage, Prepare)]
    assert [stage.settings.quota for stage in stages] == [400_000_000]
    assert sum(step.stage.name == "train" for step in ready.plan.steps) == 4


def test_variants_of_a_file_share(plugins: Plugins, tmp_path: Path) -> None:
    """As `bench run FILE` plans them, each a request of its own."""
    variants = (RequestVariant("a", {}), RequestVariant("b", {"sets": ("budget.tokens=300000000",), "label": "more"}))
    request = Request.from_options(
        "crop", "mrtydi", tasks="sw", profile="small", corpus=C4, device="cpu", data_dir=tmp_path
    )
    with offline(), unread():
        ready = plan(replace(request, variants=variants), plugins, Store(tmp_path / "store"))
    stages = [step.stage for step in ready.steps if isinstance(step.stage, Prepare)]
    assert [stage.settings.quota for stage in stages] == [600_000_000]
    assert sum(step.stage.name == "train" for step in ready.steps) == 2


def test_the_command_of_a_row_makes_it_again(plugins: Plugins, tmp_path: Path) -> None:
    """A quota that comes of another's budget is typed, and so is none; one that the profile gives anyway is not."""

    def rows(*methods: str, typed: tuple[str, ...] = ()) -> dict[str, tuple[int | None, str]]:
        request = Request.from_options(
            methods,
            "mrtydi",
            tasks="sw",
            profile="paper",
            corpus=C4,
            device="cpu",
            data_dir=tmp_path,
            sets=("compute.processes=1", "budget.steps=2000", *typed),
        )
        with offline(), unread():
            ready = plan(request, plugins, Store(tmp_path / "store"))
        systems = [cell.system for cell in ready.cells if not cell.system.untrained]
        found = {system.label: _settings(system, tuned=False) for system in systems}
        return {
            label: (row["value"], row["origin"])
            for label, settings in found.items()
            for row in settings
            if row["key"] == "prepare.quota"
        }

    (alone,), both = rows("contriever").values(), rows("crop", "contriever")  # a step of crop takes twice as much
    assert alone[1] == "profile paper"
    assert both["contriever"][1] == "--set"
    assert both["crop"][1] == "profile paper"
    assert both["crop"][0] == both["contriever"][0] != alone[0]
    assert rows("crop", typed=("prepare.quota=",)) == {"crop": (None, "--set")}
    again = rows("contriever", typed=(f"prepare.quota={both['crop'][0]}",))
    assert again == {"contriever": both["contriever"]}


def test_what_a_plan_reads_and_writes() -> None:
    """By hand: 8.1 bytes a token; half of the characters of a mixture from each part."""
    corpus = NamedCorpus("made", (part({"en": 81.0, "fi": 8.1}, ending=".txt"),), ())
    whole, some = prepared_tokens(corpus, None), prepared_tokens(corpus, 4)
    assert [whole.read, whole.written, whole.unknown, whole.packed] == pytest.approx([11, 11, 0, 0])
    assert [some.read, some.written] == pytest.approx([11, 5])
    halves = [replace(part({"en": size}, ending=".txt"), weight=0.5) for size in (81.0, 40.5)]
    assert prepared_tokens(NamedCorpus("made", tuple(halves), ()), None).written == pytest.approx(10)


def test_a_limited_corpus_in_the_key_and_the_name(plugins: Plugins, tmp_path: Path) -> None:
    """Its files and its quota; more files, another key."""
    with offline(), unread():
        request = Request.from_options("crop", **SMALL)
        (stage,) = [s for s in pretrainings(request, plugins, Store(tmp_path))[1] if isinstance(s, Prepare)]
    assert stage.title == "c4:en (7 of 1,024 files), 400,000,000 tokens a language"
    identity: Any = stage.identity()
    assert identity["settings"]["quota"] == 400_000_000
    assert identity["corpus"]["corpora"][0]["files"] == {"en": 7}


def test_text_of_one_file_is_not_limited(plugins: Plugins, tmp_path: Path) -> None:
    """All of the corpus is read, and its identity is as it was."""
    with offline(), unread():
        request = Request.from_options("crop", **{**SMALL, "corpus": "cc100:sw,te"})
        (stage,) = [s for s in pretrainings(request, plugins, Store(tmp_path))[1] if isinstance(s, Prepare)]
    identity: Any = stage.identity()
    assert "files" not in identity["corpus"]["corpora"][0]
    assert stage.title.startswith("cc100:sw,te, ")
