"""What enters the keys of post-processing: which samples and fits are shared, and which never are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.config.base import Config
from bench.core.encoder_config import EncoderConfig
from bench.pipeline.compute import Compute
from bench.pipeline.fine_tunings import Recipes, Tuning
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.pretraining import PretrainingInputs
from bench.pipeline.settings import RunConfig, Settings
from bench.pipeline.stages.encode import EncodeSample
from bench.pipeline.stages.post import PostProcess
from bench.pipeline.systems.dense import Dense, PostProcessed
from bench.retrieval.settings import PostConfig
from bench.store.graph import closure
from bench.store.stage import Stage
from bench.store.store import Store
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import Corpus, Item, Judgement, Method, Source, Subset, Task, TrainingPair

PLAIN = EncoderConfig()
PAIRS: Source[TrainingPair] = Source("p", "p/1", (), lambda: iter(()))
PROMPTED = EncoderConfig(query_prompt="query: ", passage_prompt="passage: ")


class ModelConfig(Config):
    """Names a model that is never read."""

    model: str = "owner/name"


def nodes(
    kind: str,
    query_language: str = "sw",
    searched: str = "en",
    encoder_config: EncoderConfig = PLAIN,
    seed: int = 0,
    **settings: Any,
) -> tuple[tuple[Stage, ...], PostProcess, PostProcess]:
    """Return the fits of a subset, and its passages and queries after them."""
    tied = settings.pop("tied", None)
    run = RunConfig(post=PostConfig.model_validate({"kind": kind, **settings}))
    method = Method("x", "1", "", "", Config, encoder_config=lambda _: encoder_config)
    sample = PretrainingInputs("scratch:1x32", "c", Source("c", "c/1", (), lambda: iter(())), "c", 1)
    items: Source[Item] = Source("i", "i/1", (), lambda: iter(()))
    judgements: Source[Judgement] = Source("j", "j/1", (), lambda: iter(()))
    subset = Subset("", items, judgements, Corpus("corpus", items, searched), query_language)
    task = Task("t", "mini", (subset,), ("RR@10",))
    recipes = Recipes()
    if tied is not None:
        recipes = Recipes({task.id: (Tuning("p", PAIRS, FineTuningConfig(tied=tied), "a paper"),)})
    dense = Dense("x", method, Settings(ModelConfig(), run, {}), Compute("cpu", 1))
    system = PostProcessed.from_system(dense, sample).with_recipes(recipes)
    search = system.ranking(task, subset, seed, GraphBuilder(Store(Path("never written")), {}))
    passages, queries = search.passages, search.queries
    assert isinstance(passages, PostProcess)
    assert isinstance(queries, PostProcess)
    return tuple({fit.key: fit for fit in (passages.fit, queries.fit)}.values()), passages, queries


def samples(fits: Sequence[Stage]) -> set[tuple[str, str]]:
    """Language and role of every sample that fits rest on."""
    identities: list[Mapping[str, Any]] = [stage.identity() for stage in closure(fits)]
    return {(identity["sample"]["language"], identity["role"]) for identity in identities if "sample" in identity}


def test_a_fit_is_shared_where_both_sides_are_alike() -> None:
    """One language, no prompts, one encoder; with prompts, or with two encoders, the means of the roles differ."""
    fits, passages, queries = nodes("shift", "sw", "sw")
    assert len(fits) == 1
    assert passages.inputs["fit"].key == queries.inputs["fit"].key == fits[0].key
    assert samples(fits) == {("sw", "passage")}
    prompted, passages, queries = nodes("shift", "sw", "sw", PROMPTED)
    assert samples(prompted) == {("sw", "passage"), ("sw", "query")}
    assert passages.inputs["fit"].inputs["sample"].identity()["role"] == "passage"
    assert queries.inputs["fit"].inputs["sample"].identity()["role"] == "query"
    fits, passages, queries = nodes("shift", "sw", "sw", tied=False)
    assert samples(fits) == {("sw", "passage"), ("sw", "query")}
    assert passages.fit.key != queries.fit.key
    shared, *_ = nodes("shift", "sw", "sw", tied=True)
    assert samples(shared) == {("sw", "passage")}
    sampled = {str(stage.identity()["sample"]) for stage in closure(fits) if isinstance(stage, EncodeSample)}
    assert sorted("'encoder': 'passage'" in sample for sample in sampled) == [False, True]


def test_which_languages_are_fitted() -> None:
    """The whole corpus, whatever the subset's, to centre and to whiten; each one where the texts say their own."""
    for kind in ("centre", "whiten"):
        fits, passages, _ = nodes(kind)
        assert samples(fits) == {("", "passage")}
        assert nodes(kind, "fi", "ja")[0][0].key == fits[0].key
        assert passages.identity()["language"] == ""
    assert samples(nodes("shift", "", "")[0]) == {("", "passage")}
    turned, passages, queries = nodes("calibrate", "", "", pivot="en")
    assert samples(turned) == {("", "passage"), ("en", "passage")}
    assert (passages.identity()["language"], queries.identity()["language"]) == ("", "")


def test_only_the_language_that_is_turned_rests_on_the_pivot() -> None:
    """The pivot's own fit is that of shift-scale."""
    _, passages, queries = nodes("calibrate")
    _, plain, _ = nodes("shift-scale")
    assert passages.key == plain.key
    assert "pivot" not in passages.inputs["fit"].inputs
    assert set(queries.inputs["fit"].inputs) == {"sample", "pivot"}
    _, both, _ = nodes("calibrate", pivot="fi")
    assert "pivot" in both.inputs["fit"].inputs


def test_what_decides_a_fit() -> None:
    """Kind, sample and scale do; a seed does only where something is drawn."""
    ways: list[tuple[str, dict[str, Any]]] = [
        ("shift", {}),
        *(("shift-scale", values) for values in ({}, {"sentences": 10}, {"scale_by": "var"})),
        *(("calibrate", values) for values in ({}, {"rotation": {"init": "adversarial"}})),
    ]
    assert len({nodes(kind, **values)[2].key for kind, values in ways}) == len(ways)
    assert nodes("calibrate", seed=1)[2].key == nodes("calibrate", seed=2)[2].key
    rotation = {"init": "adversarial"}
    assert nodes("calibrate", seed=1, rotation=rotation)[2].key != nodes("calibrate", seed=2, rotation=rotation)[2].key
