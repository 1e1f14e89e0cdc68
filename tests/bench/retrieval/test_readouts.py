"""Readouts: from what a protocol says to an encoder config, which rows they make, and what enters keys."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.config.profiles import profile
from bench.core.encoder_config import Document, EncoderConfig, Role
from bench.core.errors import UsageError
from bench.evaluation.command import run_command
from bench.pipeline.cells import Cells, ExperimentCell, protocol_overrides
from bench.pipeline.compute import Compute
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.pretraining import PretrainingInputs
from bench.pipeline.settings import resolve
from bench.pipeline.stages.encode import read_by
from bench.pipeline.systems.combined import hybrid
from bench.pipeline.systems.dense import PostProcessed, Trained
from bench.pipeline.systems.system import Lexical
from bench.plugins import Plugins
from bench.retrieval.readouts import depth_of, fixed, layer_of, says
from bench.store.store import Store
from bench.types import DataRequest, Readout, Source, Task
from tests.conftest import cases, hash_of, present

XTREME = Readout("a script", pooling="mean", layers={12: 8, 24: 14}, lengths=(512, 400))
CLS = Readout("another", pooling="cls", layer=-1, normalise=True, similarity="dot", title="|", question_mark=False)
TASK = Task("s/t", "official", (), ("RR@10",), readout=XTREME)


def system(plugins: Plugins, *sets: str, backbone: str = "scratch:4x32") -> Trained:
    """Crop on a corpus of nothing."""
    method = plugins.method("crop")
    documents = Source[Document]("none", "none/1", (), lambda: iter(()))
    pretraining = PretrainingInputs(backbone, "mini", documents, None, 1000)
    resolved = resolve([method], profile=profile(), sets=sets)["crop"]
    return Trained("crop", method, resolved, Compute("cpu", 1), pretraining)


@pytest.mark.parametrize(
    ("depth", "layer"), [(12, 8), (24, 14), (2, 1), (3, 2), (4, 3), (6, 4), (1, 1), (18, 12), (19, 11), (48, 28)]
)
def test_the_layer_of_a_depth(depth: int, layer: int) -> None:
    """As printed where it is; else the share of the nearest depth, 8/12 up to 18 layers and 14/24 from 19."""
    assert layer_of({12: 8, 24: 14}, depth) == layer
    assert layer_of({24: 14, 12: 8}, depth) == layer


def test_the_depth_of_a_backbone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its form says, or its config, under whatever name; a sentence where neither does."""
    assert depth_of("scratch:4x32") == 4
    path = tmp_path / "config.json"
    for name in ("num_hidden_layers", "n_layers"):
        path.write_text(json.dumps({name: 7}))
        assert depth_of(str(tmp_path)) == 7
    path.write_text("{}")
    with pytest.raises(
        UsageError, match=r"found no number of layers.*--set encode\.layer=NUMBER, or --readout encoder"
    ):
        depth_of(str(tmp_path))
    path.unlink()
    with pytest.raises(UsageError, match="expected the config of an encoder"):
        depth_of(str(tmp_path))

    def offline(*_: Any, **__: Any) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    with pytest.raises(UsageError, match=r"'owner/name@main': found no such folder, and that .* cannot be reached"):
        depth_of("owner/name@main")


def test_what_a_protocol_fixes() -> None:
    """Only what it says; the last layer by one name, so that nothing is encoded twice."""
    assert fixed(XTREME, "scratch:12x32") == {"pooling": "mean", "layer": 8, "query_length": 512, "passage_length": 400}
    assert fixed(XTREME, "scratch:1x32")["layer"] == -1
    assert fixed(Readout("nothing"), "unknown") == {}
    assert fixed(CLS, "unknown") == says(CLS)
    assert replace(EncoderConfig(), **fixed(CLS, "unknown")) == EncoderConfig(
        pooling="cls", normalise=True, similarity="dot", title="|", question_mark=False
    )


def test_the_rows_of_each_readout(plugins: Plugins) -> None:
    """The encoder config's keeps its name and hash whatever other rows there are; the protocol's are others."""
    plain = system(plugins)
    assert plain.variants() == [plain]
    encoder_config, protocol = system(plugins, "encode.readout=both").variants()
    assert (encoder_config.label, protocol.label) == ("crop", "crop+protocol")
    assert encoder_config.choices == plain.choices
    assert hash_of(encoder_config) == hash_of(plain) != hash_of(protocol)
    assert protocol.choices == {**plain.choices, "read_by": "protocol"}
    (only_protocol,) = system(plugins, "encode.readout=protocol").variants()
    assert (only_protocol.label, hash_of(only_protocol)) == (protocol.label, hash_of(protocol))
    starts = [reading.label for reading in system(plugins, "encode.readout=both").before_training().variants()]
    assert starts == ["crop@init", "crop@init+protocol"]
    assert PostProcessed.from_system(protocol, present(plain.pretraining)).label == "crop+protocol+none"


def test_a_protocols_row_reads_by_it(plugins: Plugins) -> None:
    """Over the encoder config; under what every row of the task does, and under what is typed."""
    plain, protocol = system(plugins, "encode.readout=both").variants()
    usual = plain.encoder_config(TASK)
    assert usual == plain.encoder_config(replace(TASK, readout=None))
    assert protocol.encoder_config(TASK) == replace(
        usual, pooling="mean", layer=3, query_length=512, passage_length=400
    )
    fixed_for_all = replace(TASK, lengths=(9, 10), similarity="cos", readout=CLS)
    fixed = protocol.encoder_config(fixed_for_all)
    assert (fixed.query_length, fixed.passage_length, fixed.similarity, fixed.pooling) == (9, 10, "cos", "cls")
    (typed,) = system(plugins, "encode.readout=protocol", "encode.layer=2").variants()
    assert typed.encoder_config(TASK).layer == 2
    assert protocol.encoder_config(replace(TASK, readout=None)) == usual


TYPED: dict[str, dict[str, Any]] = dict(cases("readouts-as-typed"))
"""Field of the encoder config → what is typed for it → what it becomes."""


@pytest.mark.parametrize(
    ("key", "value", "expected"), [(key, *case) for key, values in TYPED.items() for case in values.items()]
)
def test_each_part_can_be_typed(plugins: Plugins, key: str, value: str, expected: Any) -> None:
    """One field of the encoder config, and no other; it makes another system."""
    task = replace(TASK, readout=None)
    usual = system(plugins).encoder_config(task)
    typed = system(plugins, f'encode.{key}="{value}"' if value.endswith(" ") else f"encode.{key}={value}")
    assert typed.encoder_config(task) == replace(usual, **{key: expected})
    assert getattr(usual, key) != expected
    assert hash_of(typed) != hash_of(system(plugins))


def test_post_processing_of_a_protocols_row(plugins: Plugins) -> None:
    """Cosine where neither the protocol nor anybody says otherwise; the sample is read as the row is."""
    sets = ("post.kind=centre", "encode.readout=protocol", "method.similarity=dot")
    for readout, similarity, more in (
        (XTREME, "cos", ()),
        (CLS, "dot", ()),
        (XTREME, "dot", ("encode.similarity=dot",)),
    ):
        (row,) = system(plugins, *[typed for typed in sets if "method" not in typed], *more).variants()
        processed = PostProcessed.from_system(row, present(row.pretraining))
        assert processed.label == "crop+protocol+centre"
        encoder_config = row.encoder_config(replace(TASK, readout=readout), processed=True)
        assert encoder_config.similarity == similarity
        assert encoder_config.pooling == readout.pooling


def test_what_enters_the_keys_of_vectors() -> None:
    """Whatever can change them: a lower case both roles', a question mark the queries' alone."""
    roles: tuple[Role, ...] = ("query", "passage")
    for role in roles:
        assert ("question_mark" in read_by(EncoderConfig(), role)) is (role == "query")
        assert read_by(replace(EncoderConfig(), lowercase=True), role) != read_by(EncoderConfig(), role)
    dropped = replace(EncoderConfig(), question_mark=False)
    assert read_by(dropped, "passage") == read_by(EncoderConfig(), "passage")
    assert read_by(dropped, "query") != read_by(EncoderConfig(), "query")
    assert EncoderConfig(**dropped.dump()) == dropped
    assert EncoderConfig(**EncoderConfig().dump()) == EncoderConfig()


def test_a_pair_takes_the_encoder_configs_row(plugins: Plugins) -> None:
    """Where there are both; the protocol's where it is alone."""
    bm25 = plugins.method("bm25")
    lexical = Lexical("bm25", bm25, resolve([bm25])["bm25"])
    for readout, label in (("both", "bm25+crop"), ("protocol", "bm25+crop+protocol")):
        rows = system(plugins, f"encode.readout={readout}").variants()
        fused = hybrid("bm25+crop", [lexical, *rows])
        assert fused.label == label
        assert fused.by_protocol is (readout == "protocol")
        assert not fused.protocol
        assert fused.resolved.run.encode.readout == rows[0].resolved.run.encode.readout


def test_protocol_overrides(plugins: Plugins, tmp_path: Path) -> None:
    """A protocol that leaves it open refuses its row, with the reason; what is typed holds, and is reported."""
    rows = [system(plugins), *system(plugins, "encode.readout=protocol").variants()]
    suite = plugins.suite("stackfaq-threads")
    graph = GraphBuilder(Store(tmp_path / "store"), plugins.measures_by_name)
    cells = Cells(DataRequest("official"), profile(), (0,), plugins, graph)
    applicable, (refused,), _ = cells.select(rows, [(suite, [replace(TASK, readout=None)])], ["unsupervised"])
    assert [cell.system.label for cell in applicable] == ["crop"]
    assert refused.system == "crop+protocol"
    assert refused.reason == "the protocol of s/t leaves it to the encoder how texts are read (--readout encoder)"
    (row,) = system(plugins, "encode.readout=protocol", "encode.layer=2", "encode.query_prompt=x").variants()
    identity = applicable[0].identity
    cell = ExperimentCell(row, identity, plugins.suite("tatoeba"), "unsupervised", "official", 0, (TASK,))
    assert protocol_overrides([cell]) == ["crop+protocol: encode.layer overrides what the protocol says"]
    assert protocol_overrides([replace(cell, tasks=(replace(TASK, readout=CLS),))])
    assert protocol_overrides([replace(cell, system=system(plugins, "encode.layer=2"))]) == []


def test_the_command_that_makes_a_row_again() -> None:
    """Names the readout, not the row; titles that were left out are left out again."""
    typed = (("encode.readout", "protocol"), ("encode.title", "none"))
    settings = [{"key": key, "value": value, "origin": "--set"} for key, value in typed]
    system = {"label": "crop+protocol", "method": "crop", "read_by": "protocol", "readout": {"title": None}}
    cell: dict[str, Any] = {"regime": "unsupervised", "data": "mini", "profile": "mini", "seed": 0}
    tasks = {"mini/tatoeba/swh-eng": {"": {"settings": settings}}}
    content = {**cell, "system": system, "suite": {"name": "tatoeba"}, "tasks": tasks}
    words = run_command([content], whole=True)
    assert [word for word in words if word.startswith("encode.")] == ["encode.readout=protocol", "encode.title=none"]
    assert "--label" not in words


@pytest.mark.parametrize(
    ("label", "typed"),
    [
        ("crop", ["crop"]),
        ("crop@pooling=mean", []),
        ("crop@init", []),
        ("mine", ["mine"]),
        ("crop@mine", ["crop@mine"]),
    ],
)
def test_the_command_repeats_a_label_that_no_run_makes_up(label: str, typed: list[str]) -> None:
    """With a setting typed, a run would name it; the plain name of the method was therefore given by the user."""
    settings = [{"key": "method.pooling", "value": "mean", "origin": "--set"}]
    cell: dict[str, Any] = {"regime": "unsupervised", "data": "mini", "profile": "mini", "seed": 0}
    system = {"label": label, "method": "crop", "settings": settings}
    content = {**cell, "system": system, "suite": {"name": "tatoeba"}, "tasks": {"mini/tatoeba/swh-eng": {"": {}}}}
    words = run_command([content], whole=True)
    assert words[words.index("--label") + 1 :] == typed if typed else "--label" not in words
