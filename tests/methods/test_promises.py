"""What all our methods have in common: one budget, presets, a card, settings that are validated, a search space."""

from importlib import import_module
from pathlib import Path

import pytest

from bench.config.layers import check_preset
from bench.config.profiles import PROFILES, profile
from bench.core.contract import Trainer
from bench.core.errors import ConfigError
from bench.pipeline.settings import resolve
from bench.plugins import load, method_faults
from bench.training.config import TrainingConfig

OWNED = {name: owned for name, owned in load().methods.items() if owned.module.startswith("methods.")}
METHODS = {name: owned.value for name, owned in OWNED.items()}
TRAINED = [name for name, method in METHODS.items() if method.trains]
COMMON = {"mlm", "cmlm", "msm", "quickthought", "auto-mlm"}
"""Methods whose card describes their own settings alone; those of every training are in the documents."""

REFUSED = [
    ("auto-mlm", "ctl=false automlm=false", "at least one of them is learnt"),
    ("auto-mlm", "mlm=true", "set automlm=false"),
    ("auto-mlm", "margin_sign=minus", "expected one of standard, printed"),
    ("auto-mlm", "window=1", "expected a whole number ≥ 2"),
    ("auto-mlm", "masking.mask=0", "expected a number > 0"),
    ("bm25", "k1=-1", "method.k1 is -1.*expected a number ≥ 0"),
    ("bm25", "k1=nan", "method.k1 is nan.*expected a finite number"),
    ("bm25", "b=1.5", "method.b is 1.5.*expected a number from 0 to 1"),
    ("bm25", "variant=okapi", 'method.variant is "okapi".*expected one of lucene, rank_bm25'),
    ("bm25", "analyzer=porter", 'method.analyzer is "porter".*expected one of auto, words.*did you mean en-porter'),
    ("bm25", "epsilon=0.5", "method: epsilon is 0.5, but only the variant rank_bm25 has one"),
    ("bm25", "title=1", "method.title is 1.*expected true or false"),
    ("ccp", "window=1", "window is 1, expected at least 2 consecutive sentences"),
    ("ccp", "head.bn=batch", "expected one of asym, train, none, shuffle"),
    ("ccp", "bank.capacity=0", "expected a whole number ≥ 1"),
    ("ccp", "abn.order=first", "expected one of eval_first, written"),
    ("ccp", "mlm.probability=1", "expected a number ≥ 0 and < 1"),
    ("cmlm", "temperature=0.2", "temperature changes nothing in cmlm"),
    ("contriever", "queue=100", "queue is 100 and a step adds 64 keys .* type --set method.queue=128"),
    ("contriever", "queue=32", "type --set method.queue=64"),
    ("contriever", "queue=192 accumulate=2", "a step adds 128 keys"),
    ("contriever", "ratio_min=0.6", "ratio_min is 0.6 and ratio_max 0.5"),
    ("contriever", "views=ict ratio_max=1", "something of the chunk must be left"),
    ("contriever", "augmentation_probability=1", "deleting every token leaves no text"),
    ("contriever", "momentum=1.5", "expected a number"),
    ("contriever", "augmentation=shuffle", "expected one of none, delete, replace, mask"),
    ("crop", "variant=words", "expected one of sentence, span, token"),
    ("crop", "window=0", "expected a whole number ≥ 1, or nothing"),
    ("crop", "temperature=0", "expected a number > 0"),
    ("crop", "pairs=1", "expected a whole number ≥ 2"),
    ("crop", "beta2=0.5", "AdamW diverges unless"),
    ("crop", "variant=span heads=shared", "variant span has no projection heads"),
    ("crop", "variant=token document_pairs=2", "variant token draws one pair of a document"),
    ("crop", "document_pairs=40", "one document a batch"),
    ("crop", "token.low=0.9", "the least share is at most the largest"),
    ("ict", "mask_rate=1.5", "expected a number"),
    ("ict", "projection_dim=0", "expected a whole number"),
    ("ict", "block_tokens=2", "expected a whole number"),
    ("mlm", "pairs=32", "pairs changes nothing in mlm.*set mlm.sequences, mlm.tokens"),
    ("mlm", "temperature=0.05", "temperature changes nothing in mlm"),
    ("mlm", "sentence_tokens=32", "sentence_tokens changes nothing in mlm"),
    ("msm", "pairs=32", "pairs has no meaning for msm"),
    ("msm", "min_doc_sentences=33", "no block is that long"),
    ("msm", "mu=-1", "expected a number ≥ 0"),
    ("msm", "loss.mode=near", "expected one of balanced, cross_only"),
]
"""(method, settings that it refuses, what the error says)."""


PRESETS: list[tuple[str, str, dict[str, object]]] = [
    ("auto-mlm", "paper", {"pairing": "session", "pooling": "cls", "pairs": 128}),
    ("auto-mlm", "paper-mixed", {"pairing": "session", "language_pure": False}),
    ("ccp", "mini", {"bank.layout": "per_language", "bank.capacity": 128, "head.final_bn": True}),
    ("contriever", "mini", {"similarity": "cos", "norm_query": True, "norm_doc": True}),
    ("contriever", "paper", {"pairs": 64, "accumulate": 32, "queue": 131072, "loss": "moco", "query_tokens": 512}),
    ("contriever", "mcontriever", {"pairs": 64, "accumulate": 64, "queue": 32768, "loss": "moco"}),
    ("crop", "contriever-crops", {"token.low": 0.05, "token.high": 0.5, "variant": "token"}),
    ("msm", "paper", {"min_doc_sentences": 2, "doc_sentences": 32, "learning_rate": 4e-5}),
    ("msm", "paper-code", {"min_doc_sentences": 32, "doc_sentences": 32, "learning_rate": 4e-5}),
    ("quickthought", "mini", {"similarity": "cos"}),
]
"""(method, preset, values that it has): as the papers print them, or as the mini world needs them."""


@pytest.mark.parametrize(("name", "preset", "values"), PRESETS)
def test_presets_as_printed(name: str, preset: str, values: dict[str, object]) -> None:
    """What a config has when the preset is named."""
    given = resolve([METHODS[name]], profile=None, preset=preset)[name].method.model_dump()
    for key, value in values.items():
        found = given
        for part in key.split("."):
            found = found[part]
        assert found == value, key


@pytest.mark.parametrize(("name", "grid"), [("contriever", "queue"), ("contriever", "negatives")])
def test_a_grid_says_what_budget_it_needs(name: str, grid: str) -> None:
    """A million tokens fill no large queue and make two steps of 4096 pairs; the summary and the card say so."""
    assert "budget" in METHODS[name].presets[grid].summary
    rows = [line for line in METHODS[name].card().splitlines() if line.startswith(f"| `{grid}` | grid")]
    assert ["profile `mini`" in row for row in rows] == [True]


def test_the_methods_are_there() -> None:
    """The seven, and the baselines."""
    seven = {"bm25", "ict", "crop", "ccp", "msm", "auto-mlm", "contriever"}
    assert set(METHODS) == seven | {"pretrained", "mlm", "simcse", "quickthought", "cmlm"}


@pytest.mark.parametrize("name", METHODS)
def test_a_plugin_brings_one_sound_method(name: str) -> None:
    """Its config, presets, grids and search space are sound; its doors open; its card is the README beside it."""
    method, module = METHODS[name], import_module(OWNED[name].module)
    assert [*module.bench_methods()] == [method]
    assert method_faults(method) == []
    if method.trainer is not None:
        trainer: Trainer = method.build_trainer(method.config())
        assert callable(trainer.train)
    assert method.card() == Path(str(module.__file__)).with_name("README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", METHODS)
def test_a_card_describes_every_setting_and_preset(name: str) -> None:
    """By its name; a group of settings by its own or by those of all its members."""
    method = METHODS[name]
    card, missing = method.card(), [name for name in method.presets if f"`{name}`" not in method.card()]
    for row in resolve([method])[name].rows():
        section, _, key = row.key.partition(".")
        group = key.partition(".")[0]
        if section == "method" and not (name in COMMON and group in TrainingConfig.model_fields):
            missing += [] if f"`{key}`" in card or f"`{group}`" in card else [key]
    assert missing == []


@pytest.mark.parametrize(("name", "sets", "message"), REFUSED)
def test_a_wrong_setting_is_refused(name: str, sets: str, message: str) -> None:
    """The error says what is allowed, before anything starts."""
    with pytest.raises(ConfigError, match=message):
        resolve([METHODS[name]], sets=[f"method.{one}" for one in sets.split()])


@pytest.mark.parametrize("name", TRAINED)
def test_what_its_paper_prints_is_a_preset(name: str) -> None:
    """Large profiles take it; it says where its values come from, and is one that a config takes."""
    method = METHODS[name]
    paper = method.presets["paper"]
    assert paper.source
    assert check_preset(method.config, paper.values) == []
    for size in ("small", "paper"):
        given = resolve([method], profile=profile(size))[name]
        assert all(given.origins[f"method.{key}"] == f"profile {size}" for key in paper.values)
        assert getattr(given.method, "learning_rate", 0) <= 5e-4  # weights that were trained before want small steps


@pytest.mark.parametrize("name", [*TRAINED, "bm25"])
def test_it_can_be_tuned(name: str) -> None:
    """It has a search space."""
    assert METHODS[name].space


def test_a_named_preset_replaces_that_of_the_profile() -> None:
    """A plain one does; the cells of a grid lie over it."""
    ccp, size = METHODS["ccp"], PROFILES["mini"]
    assert resolve([ccp], profile=size)["ccp"].origins["method.bank.capacity"] == "profile mini"
    assert resolve([ccp], profile=size, preset="paper")["ccp"].origins["method.bank.capacity"] == "preset paper"
    plain = resolve([ccp], profile=None)["ccp"]
    assert "method.bank.capacity" not in plain.origins
    named = resolve([METHODS["contriever"]], profile=size, preset="mcontriever")["contriever"]
    assert named.origins["method.queue"] == "preset mcontriever"
