"""What precedes the test of a dense method: backbone, corpus and budget, resolved from options and profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.core.contract import Document
from bench.core.errors import UsageError
from bench.pipeline.names import places
from bench.store.inputs import Inputs
from bench.types import Json, Source

if TYPE_CHECKING:
    from bench.config.profiles import Profile
    from bench.config.request import Request
    from bench.pipeline.settings import RunConfig
    from bench.store.store import Store

MINI = "mini"


@dataclass(frozen=True)
class Pretraining:
    """What a dense method is pretrained from, on and for how long."""

    backbone: str  # `scratch:LxH`, a folder or a Hugging Face id
    corpus: str
    documents: Source[Document]
    digest: Json  # decides the documents: reader and hashes of files
    tokens: int  # the budget; 0 where it is in operations
    places: Mapping[str, str] = field(default_factory=dict)  # of the backbone: path → public name
    of_world: bool = False  # the corpus is the embedded world's, not a folder of that name
    flops: float | None = None  # the budget in floating-point operations; None: in tokens

    @property
    def scratch(self) -> bool:
        """Whether the backbone has random weights and a tokenizer trained on the corpus."""
        return self.backbone.startswith("scratch:")


def pretraining(request: Request, size: Profile, run: RunConfig, store: Store) -> Pretraining:
    """Choose backbone, corpus and budget: the options, else the profile's.

    Raises:
        UsageError: a corpus that is not there, or a profile that names none.
    """
    name = _named(request, size, run)
    flops = run.budget.flops
    tokens = run.budget.tokens or (0 if flops else size.budget)
    if tokens is None:
        raise UsageError(f"profile {size.name} names no token budget; type --set budget.tokens=100000000, for instance")
    return replace(_on(name, request.backbone or size.backbone, tokens, run, store), flops=flops)


def sample(request: Request, size: Profile, run: RunConfig, store: Store, backbone: str) -> Pretraining:
    """Choose the corpus that post-processing is fitted on where nothing is pretrained; the budget is 0.

    `backbone` says whose tokenizer reads the corpus.

    Raises:
        UsageError: a corpus that is not there, or a profile that names none.
    """
    return _on(_named(request, size, run), backbone, 0, run, store)


def _named(request: Request, size: Profile, run: RunConfig) -> str:
    """The corpus's name: the option, else the profile's. Raises `UsageError` where there is neither."""
    name = request.corpus or None
    if name is None and size.data == MINI:
        from bench.data.mini import named

        name = named(run.mini.world).corpus  # `mini`, or `mini-few-names` and the like
    if name is None:
        raise UsageError(f"profile {size.name} names no pretraining corpus yet; type --corpus FOLDER, or --corpus mini")
    return name


def _on(name: str, backbone: str, tokens: int, run: RunConfig, store: Store) -> Pretraining:
    """A pretraining on the corpus of a name."""
    documents = _documents(name, run)
    digest: dict[str, Json] = {
        "reader": documents.reader,
        "files": [store.hash_input(path) for path in documents.files],
    }
    named = places([backbone], Inputs(store))
    short = Path(name).name or name  # without its place on this machine
    return Pretraining(backbone, short, documents, digest, tokens, named, _of_world(name))


def _documents(name: str, run: RunConfig) -> Source[Document]:
    """The documents of a corpus of the embedded world, or of a folder or file.

    Raises:
        UsageError: there is neither.
    """
    if _of_world(name):
        from bench.data.mini import named_corpus

        return named_corpus(name)
    from bench.data.corpora.documents import documents

    return documents(name, run.data.language)


def _of_world(name: str) -> bool:
    """Tell a corpus of the embedded world from a folder; whatever stands on disk is a folder, but for `mini` itself."""
    return name == MINI or (name.startswith(f"{MINI}-") and not Path(name).expanduser().exists())
