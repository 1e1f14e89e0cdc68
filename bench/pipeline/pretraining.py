"""What precedes the test of a dense method: backbone, corpus and budget, resolved from options and profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.core.encoder_config import Document
from bench.data.corpora.named import NamedCorpus, is_named
from bench.pipeline.public_names import public_names
from bench.store.input_hashes import InputHashes
from bench.types import Json, Source

if TYPE_CHECKING:
    from bench.config.profiles import Profile
    from bench.pipeline.settings import RunConfig
    from bench.types import PretrainingCorpus

MINI = "mini"


@dataclass(frozen=True)
class PretrainingInputs:
    """What a dense method is pretrained from, on and for how long."""

    backbone: str  # `scratch:LxH`, a folder or a Hugging Face id
    corpus: str
    documents: Source[Document]
    digest: Json  # decides the documents: reader and hashes of files
    tokens: int  # the budget; 0 where it is in operations or steps
    public_names: Mapping[str, str] = field(default_factory=dict)  # of the backbone: path → public name
    of_world: bool = False  # the corpus is the embedded world's, not a folder of that name
    flops: float | None = None  # the budget in floating-point operations; None: in tokens or steps
    steps: int | None = None  # the budget in changes of the weights
    named: NamedCorpus | None = None  # the corpus, where plugins bring it

    @property
    def scratch(self) -> bool:
        """Whether the backbone has random weights and a tokenizer trained on the corpus."""
        return self.backbone.startswith("scratch:")


def corpus_name(name: str | None, size: Profile, run: RunConfig) -> str:
    """Return the name of the corpus to train on: the one given, else the profile's, else the synthetic world's."""
    if name or size.corpus:
        return name or size.corpus
    from bench.data.mini import variant

    return variant(run.mini.world).corpus  # `mini`, or `mini-few-names` and the like


def pretraining(
    name: str,
    backbone: str,
    data_dir: Path | None,
    run: RunConfig,
    inputs: InputHashes,
    corpora: Mapping[str, PretrainingCorpus],
) -> PretrainingInputs:
    """Return what a backbone is trained on; the budget is 0.

    Args:
        name: of the corpus: one of the synthetic world, one that plugins bring, a folder or a file.
        backbone: what is trained, or whose tokenizer reads the corpus.
        data_dir: folder of official data, where corpora of plugins lie.
        run: the harness's own settings.
        inputs: takes checksums of files.
        corpora: corpora of plugins by name.

    Raises:
        UsageError: there is no such corpus.
    """
    names = public_names([backbone], inputs)
    if is_named(name, corpora):
        corpus = NamedCorpus.parse(name, corpora, data_dir).within(run.prepare.quota)
        return PretrainingInputs(backbone, name, corpus.source(), corpus.identity(), 0, names, named=corpus)
    # Whatever stands on disk is a folder, but for `mini` itself.
    of_world = name == MINI or (name.startswith(f"{MINI}-") and not Path(name).expanduser().exists())
    if of_world:
        from bench.data.mini import named_corpus

        documents = named_corpus(name)
    else:
        from bench.data.corpora.documents import documents as read_documents

        documents = inputs.source((name, run.data.language), lambda: read_documents(name, run.data.language))
    digest: dict[str, Json] = {"reader": documents.reader, "files": [inputs.hash(path) for path in documents.files]}
    short = Path(name).name or name  # without its place on this machine
    return PretrainingInputs(backbone, short, documents, digest, 0, names, of_world)
