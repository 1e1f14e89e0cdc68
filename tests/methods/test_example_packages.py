"""The methods under `examples/methods`: packages on the public door, each a page, that train, resume and keep promises.

Their losses by hand are tested in their own folders (`examples/methods/NAME/tests`), as a package's own tests are.
"""

import json
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn

from bench.config.plugin_faults import method_faults
from bench.core.errors import UsageError
from bench.core.workspace import noop
from bench.data.corpora.shards import Shards
from bench.pipeline.settings import resolve
from bench.plugins import Plugins, load
from bench.studies.conformance.checks import run
from bench.testing import fields
from bench.training.heads import Layer, Shape
from bench.training.mlm import MaskedBlocks, MlmHead
from bench.training.views import read_segment, segments
from tests.conftest import LANGUAGES, TrainMethod
from tests.methods.conftest import EncoderFor

PACKAGES = Path(__file__).parents[2] / "examples" / "methods"
NAMES = {"bow": "bow", "retromae": "retromae", "condenser": "condenser", "title-body": "title_body"}
"""Method → its folder."""
SMALL: dict[str, Any] = {"probe_pairs": 4, "checkpoint_tokens": 200, "learning_rate": 5e-3, "log_every": 1}
SETTINGS: dict[str, dict[str, Any]] = {
    "bow": {"mlm": {"tokens": 20, "sequences": 6}},
    "retromae": {"mlm": {"tokens": 20, "sequences": 6}},
    "condenser": {"tokens": 10, "pairs": 6},
    "title-body": {"pairs": 6, "query_prompt": "w10 ", "passage_prompt": "w11 "},
}
LOGGED = {
    "bow": {"mlm_loss", "bow_loss", "bow_weight"},
    "retromae": {"mlm_loss", "decoder_loss"},
    "condenser": {"head_mlm_loss", "late_mlm_loss", "contrast", "accuracy"},
    "title-body": {"accuracy", "sharpest", "candidates"},
}


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> Plugins:
    """Load the packages as if they were installed, in this process and its children."""
    folders = [PACKAGES / folder for folder in NAMES.values()]
    for folder in folders:
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", ":".join(map(str, folders)), prepend=":")
    return load({}, extra=[import_module(f"bench_{folder}") for folder in NAMES.values()], entries=())


@pytest.fixture
def titled(corpus: Path, tmp_path: Path) -> Path:
    """The planted corpus, whose first sentences are said to be titles."""
    folder = Path(shutil.copytree(corpus, tmp_path / "titled"))
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    (folder / "meta.json").write_text(json.dumps({**meta, "titles": True}), encoding="utf-8")
    return folder


def test_every_folder_is_tried() -> None:
    """What lies there is what this module names, and each entry point is the method's name."""
    points: dict[str, str] = {}
    for path in PACKAGES.glob("*/pyproject.toml"):
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        points |= dict.fromkeys(project["entry-points"]["bench"], path.parent.name)
    assert points == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_package_is_a_page_with_a_card(name: str, packages: Plugins) -> None:
    """Fewer than 200 lines; sound declarations; a card that names each of its settings, its presets and its sources."""
    modules = [*(PACKAGES / NAMES[name] / f"bench_{NAMES[name]}").glob("*.py")]
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules) < 200
    method = packages.method(name)
    assert method_faults(method) == []
    card = method.card()
    rows = [row.key.removeprefix("method.") for row in resolve([method])[name].rows() if row.key.startswith("method.")]
    own = [key for key in rows if key.partition(".")[0] in method.config.__annotations__]
    assert own
    assert [key for key in (*own, *method.presets) if f"`{key}`" not in card] == []
    assert [word for word in ("## Departures", "## Sources", "arXiv") if word not in card] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_training_resumes_and_ends_in_an_encoder(
    name: str, packages: Plugins, train_method: TrainMethod, corpus: Path, titled: Path
) -> None:
    """Of the tiny encoder: the parts of the loss are logged; killed half-way, it writes the same bytes."""
    method = packages.method(name)
    config: Any = method.config.model_validate({**SMALL, **SETTINGS[name]})
    shards = titled if name == "title-body" else corpus

    def train(folder: str, advance: Callable[[float], None] = noop) -> Any:
        trainer = method.build_trainer(config)
        return train_method(folder, trainer, config.encoder_config(), tokens=1500, shards=shards, advance=advance)

    whole = train("whole")
    assert LOGGED[name] <= set(whole.log[1])
    assert whole.metadata["without_gradient"] == []
    assert whole.metadata["steps"] >= 4
    if name == "bow":
        weights = [line["bow_weight"] for line in whole.log[1:]]
        assert weights[0] == 1.0
        assert weights == sorted(weights, reverse=True)
        assert 0.1 < weights[-1] < 0.5
    spent = 0.0

    def kill(tokens: float) -> None:
        nonlocal spent
        spent += tokens
        if spent > 700:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train("killed", kill)
    assert train("killed").files() == whole.files()


@pytest.mark.parametrize("name", NAMES)
def test_only_a_training_by_contrast_alone_may_be_stopped(name: str, packages: Plugins) -> None:
    """Of the others vectors look collapsed while predictions are learnt, and `bench sweep` stops by default."""
    sets = ["train.stop_when=collapsed"]
    config: Any = resolve([packages.method(name)], sets=sets)[name].method
    assert config.stop_when == ("collapsed" if name == "title-body" else "never")


def test_titles_are_asked_for(packages: Plugins, train_method: TrainMethod) -> None:
    """A corpus that was prepared without them is refused, and what to type is said."""
    method = packages.method("title-body")
    config: Any = method.config.model_validate({**SMALL, **SETTINGS["title-body"]})
    with pytest.raises(UsageError, check=fields(found="without titles", hint="--set prepare.titles=true")):
        train_method("refused", method.build_trainer(config), config.encoder_config())


def test_a_title_is_no_part_of_its_body(packages: Plugins, titled: Path) -> None:
    """First sentence against all others from the second on, each behind its prompt, cut at its length."""
    source = import_module("bench_title_body.trainer").TitlesAndBodies
    method, shards = packages.method("title-body"), Shards(titled)
    config: Any = method.config.model_validate({**SMALL, "pairs": 6, "title_tokens": 6, "body_tokens": 9})
    batch = source(shards, config, 1, (np.array([10]), np.array([11, 12]))).batch(np.random.default_rng(0))
    for document, title, body in zip(batch.documents.tolist(), batch.left, batch.right, strict=True):
        sentences = [shards.sentence(document, at).tolist() for at in range(shards.sentence_count(document))]
        assert list(title) == [1, 10, *sentences[0][:3], 2]
        assert list(body) == [1, 11, 12, *np.concatenate(sentences[1:])[:5], 2]


def test_spans_are_of_one_document_and_differ(packages: Plugins, shards: Shards) -> None:
    """2i and 2i + 1; with one span each, as Condenser has them, documents of one span take part."""
    source = import_module("bench_condenser.trainer").Spans
    method = packages.method("condenser")
    places = {
        tuple(read_segment(shards, document, bounds, 8, seen=False).tolist()): document
        for document in range(sum(LANGUAGES.values()))
        for bounds in segments(shards, document, 8)
    }
    for variant, each in (("cocondenser", 2), ("condenser", 1)):
        config: Any = method.config.model_validate({**SMALL, "tokens": 8, "pairs": 8, "variant": variant})
        masked = source(shards, config, 1).batch(np.random.default_rng(0))
        assert len(masked) == 8 * each
        texts = [np.array(ids) for ids in masked.inputs]
        for sequence, place, target in zip(masked.sequence, masked.place, masked.targets, strict=True):
            texts[sequence][place] = target
        owners = [places[tuple(text.tolist())] for text in texts]
        assert owners == [owner for owner in owners[::each] for _ in range(each)]
        assert len(set(owners)) == 8
        if each == 2:
            assert all(not np.array_equal(first, second) for first, second in zip(texts[::2], texts[1::2], strict=True))


def test_retromaes_loss_written_out(packages: Plugins, encoder_for: EncoderFor, shards: Shards) -> None:
    """Text by text, without packing: the encoder's states, then the decoder at each place over what is left to it."""
    source = import_module("bench_retromae.trainer").VeiledBlocks
    method = packages.method("retromae")
    config: Any = method.config.model_validate({**SMALL, **SETTINGS["retromae"]})
    encode = encoder_for(config)
    with torch.no_grad():
        encode.embeddings.mul_(20)
    shape = replace(Shape.from_config(encode.model.config), dropout=0.0)
    modules = nn.ModuleDict({"head": MlmHead.for_(encode), "decoder": Layer(shape)})
    batch = source(MaskedBlocks(shards, config, config.mlm, 1), 0.5).batch(np.random.default_rng(0))
    masked, model = batch, cast(Any, encode.model)
    hidden, whole = [], []

    def loss_of(states: torch.Tensor, target: int) -> float:
        logits = modules["head"](states) @ encode.embeddings.T + modules["head"].bias
        return float(logits.logsumexp(0) - logits[target])

    with torch.no_grad():
        for number, inputs in enumerate(masked.inputs):
            late = encode.hidden([inputs], -1)[0]
            ids = encode.rows(np.asarray(inputs))
            here = masked.sequence == number
            targets = encode.rows(masked.targets[here])
            ids[masked.place[here]] = targets
            hidden += [loss_of(late[at], to) for at, to in zip(masked.place[here], targets, strict=True)]
            embedded = model.embeddings(input_ids=torch.from_numpy(ids)[None])[0]
            context = torch.cat([late[:1], embedded[1:]])
            positions = model.embeddings.position_embeddings.weight[: len(ids)]
            for place in np.flatnonzero(batch.veils[number].diagonal()):
                left = context[torch.from_numpy(~batch.veils[number][place])]
                query = (positions[place] + late[0])[None, None]
                whole.append(loss_of(modules["decoder"](query, left[None], None)[0, 0], ids[place]))
        loss, values = method.build_trainer(config).loss(modules, encode, batch)  # type: ignore[attr-defined]
    assert len(whole) == sum(len(ids) - 2 for ids in masked.inputs)
    assert values() == pytest.approx({"mlm_loss": np.mean(hidden), "decoder_loss": np.mean(whole)}, abs=1e-4)
    assert float(loss) == pytest.approx(np.mean(hidden) + np.mean(whole), abs=2e-4)


def test_a_backbone_without_learnt_positions_is_refused(packages: Plugins, encoder_for: EncoderFor) -> None:
    """RetroMAE's decoder asks with them."""
    method = packages.method("retromae")
    encode = encoder_for(method.config())
    del cast(Any, encode.model).embeddings.position_embeddings
    with pytest.raises(UsageError, check=fields(found="BertModel", hint="--backbone")):
        method.build_trainer(method.config()).train_on(encode, None, None, None)  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_promise_is_kept(name: str, packages: Plugins, tmp_path: Path) -> None:
    """None is broken; three do not claim to learn from random weights in a moment, and say why."""
    sets = ["prepare.titles=true"] if name == "title-body" else []
    verdicts = list(run(name, tmp_path, plugins=packages, sets=sets))
    assert [f"{verdict.check.name}: {verdict.reason}" for verdict in verdicts if verdict.state == "broken"] == []
    left_out = [verdict.check.name for verdict in verdicts if verdict.state == "not applicable"]
    assert left_out == ([] if name == "title-body" else ["learns-planted-corpus"])
