"""Dialogues of the embedded world as a pretraining corpus."""

from itertools import islice
from pathlib import Path

import pytest

from bench.config.request import Request
from bench.core.errors import UsageError
from bench.data import mini
from bench.data.mini.settings import variant_of_corpus
from bench.pipeline.plan import Plan, plan
from bench.plugins import load
from bench.store.store import Store


def planned(place: Path, corpus: str) -> Plan:
    return plan(Request(methods=("crop",), suites=("mrtydi",), tasks=("sw",), corpus=corpus), load(), Store(place))


def test_names_of_corpora() -> None:
    """Documents and dialogues of every world, distinguished by their readers; a name that is nearly one says which."""
    for settings in mini.PRESETS.values():
        documents, talks = (mini.named_corpus(settings.corpus + kind) for kind in ("", "-dialogues"))
        assert documents.reader == mini.corpus(settings).reader
        assert talks.reader == mini.dialogue_corpus(settings).reader != documents.reader
        assert variant_of_corpus(f"{settings.corpus}-dialogues") == settings
    first = next(iter(mini.named_corpus("mini-dialogues").read()))
    assert first == next(islice(mini.dialogues(first.language), 1))
    with pytest.raises(UsageError, match="did you mean mini-dialogues"):
        mini.named_corpus("mini-dialogue")


def test_dialogues_are_of_their_world(tmp_path: Path) -> None:
    """Another system than that of the documents, in the same world: no warning, no shared key of training."""
    talks, documents = planned(tmp_path, "mini-dialogues"), planned(tmp_path, "mini")
    assert talks.warnings == documents.warnings == ()
    assert {cell.identity.hash for cell in talks.cells}.isdisjoint(cell.identity.hash for cell in documents.cells)
    other_world = planned(tmp_path, "mini-few-names-dialogues")
    assert other_world.warnings == ("trained on mini-few-names, tested in another world (mini)",)
