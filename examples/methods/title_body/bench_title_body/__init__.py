"""Title–body pairs, as in the weak stage of multilingual E5. Importing it imports no torch."""

from dataclasses import replace
from typing import Literal

from bench import Choice, LogUniform, Method, Preset, constant, hookimpl, setting
from bench.training import SHORTEST, DenseConfig, EncoderConfig, Pass, PoolBy


class TitleBodyConfig(DenseConfig):
    """What decides the training, and how its encoder reads texts."""

    title_tokens: int = setting(
        64,
        ge=SHORTEST,
        source="ours: as queries in search",
        help="tokens kept of a title, special ones and prompt included",
    )
    body_tokens: int = setting(
        256,
        ge=SHORTEST,
        source="ours: as passages in search",
        help="tokens kept of a body, special ones and prompt included",
    )
    query_prompt: str = setting(
        "query: ", max_length=200, source="multilingual E5's model cards", help="put before titles, and before queries"
    )
    passage_prompt: str = setting(
        "passage: ",
        max_length=200,
        source="multilingual E5's model cards",
        help="put before bodies, and before passages",
    )
    pooling: PoolBy = setting("mean", source="multilingual E5's model cards: average_pool")
    similarity: Literal["cos"] = constant("cos", source="multilingual E5's model cards: normalised vectors")
    temperature: float = setting(
        0.01,
        gt=0,
        source="multilingual E5's model cards: a low temperature 0.01 for InfoNCE",
        help="what cosines are divided by before the softmax",
    )
    sentence_tokens: int = constant(64, source="no single sentences are read; set title_tokens and body_tokens")

    def encoder_config(self) -> EncoderConfig:
        """How the encoder reads texts: with the prompts that it was trained with."""
        return replace(super().encoder_config(), query_prompt=self.query_prompt, passage_prompt=self.passage_prompt)

    def own_passes(self, sentence: float, document: float) -> tuple[Pass, ...]:
        """Return the passes over titles and over bodies."""
        title, body = min(self.title_tokens, sentence), min(self.body_tokens, document)
        return Pass(self.pairs * title, title), Pass(self.pairs * body, body)


TITLE_BODY = Method(
    name="title-body",
    version="1",
    summary="A title finds the text under it among the texts of all titles in the batch.",
    citation="Liang Wang et al. 2024. Multilingual E5 Text Embeddings: A Technical Report. arXiv 2402.05672. Liang "
    "Wang et al. 2022. Text Embeddings by Weakly-Supervised Contrastive Pre-training. arXiv 2212.03533.",
    config=TitleBodyConfig,
    encoder_config=TitleBodyConfig.encoder_config,
    trainer="bench_title_body.trainer:TitleBodyTrainer",
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets={
        "paper": Preset(
            {"learning_rate": 2e-4, "pairs": 32_768, "chunk_tokens": 65_536},
            source="multilingual E5 (arXiv 2402.05672), base: batches of 32k, 30k steps (as several notes quote), rate "
            "2e-4 (by a summary of its appendix A); not checked against the report; chunks are ours",
            summary="a backbone that was trained before, in the largest batches",
            backbone="FacebookAI/xlm-roberta-base",
            steps=30_000,
        )
    },
    space={
        "learning_rate": LogUniform(1e-4, 5e-3),
        "warm_up": Choice((0.05, 0.1, 0.2)),
        "temperature": Choice((0.01, 0.05, 0.1)),
    },
    describe=__name__,
    licence="Apache-2.0",
    code="https://github.com/microsoft/unilm/tree/master/e5",
)


@hookimpl
def bench_methods() -> list[Method]:
    """Bring title-body."""
    return [TITLE_BODY]
