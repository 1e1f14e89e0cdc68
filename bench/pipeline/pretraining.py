"""What precedes the test of a dense method: backbone, corpus and budget, resolved from options and profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.core.contract import Document
from bench.data.corpora.named import NamedCorpus, is_named
from bench.pipeline.names import places
from bench.store.inputs import Inputs
from bench.types import Json, Source

if TYPE_CHECKING:
    from bench.config.profiles import Profile
    from bench.config.request import Request
    from bench.pipeline.settings import RunConfig
    from bench.plugins import Plugins
    from bench.store.store import Store
    from bench.types import Preset

MINI = "mini"


@dataclass(frozen=True)
class Pretraining:
    """What a dense method is pretrained from, on and for how long."""

    backbone: str  # `scratch:LxH`, a folder or a Hugging Face id
    corpus: str
    documents: Source[Document]
    digest: Json  # decides the documents: reader and hashes of files
    tokens: int  # the budget; 0 where it is in operations or steps
    places: Mapping[str, str] = field(default_factory=dict)  # of the backbone: path → public name
    of_world: bool = False  # the corpus is the embedded world's, not a folder of that name
    flops: float | None = None  # the budget in floating-point operations; None: in tokens or steps
    steps: int | None = None  # the budget in changes of the weights
    named: NamedCorpus | None = None  # the corpus, where plugins bring it

    @property
    def scratch(self) -> bool:
        """Whether the backbone has random weights and a tokenizer trained on the corpus."""
        return self.backbone.startswith("scratch:")


def pretraining(
    request: Request, size: Profile, run: RunConfig, store: Store, plugins: Plugins, preset: Preset | None
) -> Pretraining:
    """Choose backbone, corpus and budget: the options, else those of the method's own preset, else the profile's."""
    budget = {name: value for name, value in run.budget if value is not None}
    usual = {"tokens": size.budget} if size.budget else {"steps": (preset and preset.steps) or size.steps}
    name = _corpus_name(request, size, run, preset)
    plan = _on(name, request, request.backbone or (preset and preset.backbone) or size.backbone, run, store, plugins)
    return replace(plan, **(budget or usual))


def sample(
    request: Request, size: Profile, run: RunConfig, store: Store, backbone: str, plugins: Plugins
) -> Pretraining:
    """Choose the corpus that post-processing is fitted on where nothing is pretrained; the budget is 0.

    `backbone` says whose tokenizer reads the corpus. Raises `UsageError` for a corpus that is not there.
    """
    return _on(_corpus_name(request, size, run), request, backbone, run, store, plugins)


def _corpus_name(request: Request, size: Profile, run: RunConfig, preset: Preset | None = None) -> str:
    """The corpus's name: the option, else that of the method's own preset, else the profile's."""
    name = request.corpus or (preset and preset.corpus) or size.corpus
    if not name:
        from bench.data.mini import variant

        name = variant(run.mini.world).corpus  # `mini`, or `mini-few-names` and the like
    return name


def _on(name: str, request: Request, backbone: str, run: RunConfig, store: Store, plugins: Plugins) -> Pretraining:
    model_places = places([backbone], Inputs(store))
    if is_named(name, plugins.corpora_by_name):
        corpus = NamedCorpus.of(name, plugins.corpora_by_name, request.data_dir)
        return Pretraining(backbone, name, corpus.source(), corpus.identity(), 0, model_places, named=corpus)
    documents = _documents(name, run)
    digest: dict[str, Json] = {
        "reader": documents.reader,
        "files": [store.hash_input(path) for path in documents.files],
    }
    short = Path(name).name or name  # without its place on this machine
    return Pretraining(backbone, short, documents, digest, 0, model_places, _of_world(name))


def _documents(name: str, run: RunConfig) -> Source[Document]:
    """The documents of the embedded world, or of a folder or file. Raises `UsageError` where there is neither."""
    if _of_world(name):
        from bench.data.mini import named_corpus

        return named_corpus(name)
    from bench.data.corpora.documents import documents

    return documents(name, run.data.language)


def _of_world(name: str) -> bool:
    """Tell a corpus of the embedded world from a folder; whatever stands on disk is a folder, but for `mini` itself."""
    return name == MINI or (name.startswith(f"{MINI}-") and not Path(name).expanduser().exists())
