"""The paper's recipe, and its ablations with the numbers that it prints. No torch."""

from collections.abc import Mapping
from typing import Any

from bench import Cell, Preset

_PAPER: Mapping[str, Any] = {
    "pairing": "session",
    "pooling": "cls",
    "pairs": 128,
    "sentence_tokens": 64,
    "query_tokens": 64,
    "passage_tokens": 64,
    "learning_rate": 5e-5,
    "warm_up": 0.033,
}
_MARKETS, _P1, _P5 = "top-30 accuracy, 9 markets", "AskUbuntu P@1", "AskUbuntu P@5"


def _reported(markets: float, first: float, fifth: float) -> Mapping[str, float]:
    return {_P1: first, _P5: fifth, _MARKETS: markets}


PRESETS = {
    "mini": Preset(
        values={"pooling": "mean"},
        source="ours: measured on the mini world, where random weights learn nothing by the first token",
        summary="for random weights and a budget of a minute; profile mini takes it",
    ),
    "paper": Preset(
        values=_PAPER,
        source=(
            "Auto-MLM (arXiv 2203.16187): 64 tokens, batches of 128, margin 0.1, λ 1; learning rate and warm-up (10k "
            "of 300k steps) are ours, the paper prints none. Batches are of one language, as in every method here"
        ),
        summary="the paper's recipe, for dialogues (--corpus mini-dialogues) and an encoder of four layers",
    ),
    "paper-mixed": Preset(
        values={**_PAPER, "language_pure": False},
        source="Auto-MLM (arXiv 2203.16187), algorithm 1 and section 4.1.1: batches of a corpus that mixes languages",
        summary="the preset paper with batches of mixed languages, as algorithm 1 draws them",
    ),
    "parts": Preset(
        values={},
        source="Auto-MLM (arXiv 2203.16187), its tables of nine markets and of AskUbuntu; CL + MLM only in a figure",
        summary="what each part brings",
        cells=(
            Cell("cl", {"automlm": False}, _reported(78.0, 60.0, 43.4)),
            Cell("cl+mlm", {"automlm": False, "mlm": True}),
            Cell("automlm", {"ctl": False}, {_MARKETS: 71.7}),
            Cell("cl+automlm", {}, _reported(80.7, 64.0, 46.1)),
        ),
        suite="askubuntu",
        measure="P@1",
        reported_measure=_MARKETS,
    ),
    "lambda": Preset(
        values={},
        source="Auto-MLM (arXiv 2203.16187), a figure that prints no numbers: 1 was best",
        summary="the weight of the prediction of hidden tokens",
        cells=tuple(Cell(f"{weight:g}", {"weight": weight}) for weight in (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)),
        suite="askubuntu",
        measure="P@1",
    ),
}
