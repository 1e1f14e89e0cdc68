"""Errors: their fields, the sentence made of them, and their way through a process boundary."""

import pickle

import pytest

from bench.core.errors import BenchError, ConfigError, DataError, DataFaultsError, PluginError, StoreError, UsageError
from bench.testing import fields
from tests.conftest import cases


@pytest.mark.parametrize(("error_fields", "sentence"), cases("the-sentence-is-made-of-the-fields"))
def test_the_sentence_is_made_of_the_fields(error_fields: dict[str, str], sentence: str) -> None:
    """Parts that are empty leave no trace."""
    assert str(UsageError(**error_fields)) == sentence


@pytest.mark.parametrize("kind", [BenchError, UsageError, ConfigError, PluginError, StoreError])
def test_fields_survive_a_process_boundary(kind: type[BenchError]) -> None:
    """Workers send errors pickled."""
    error = kind(where="w", found="f", expected="e", hint="h")
    restored = pickle.loads(pickle.dumps(error))  # noqa: S301 (pickled on the line itself)
    assert type(restored) is kind
    assert (str(restored), restored.where, restored.found, restored.expected, restored.hint) == (
        str(error),
        "w",
        "f",
        "e",
        "h",
    )


def test_faults_of_data() -> None:
    """They keep their line across a process boundary; texts match by containment, all else by equality."""
    fault = DataError("a.jsonl", 3, "x", "y", "z")
    several = pickle.loads(pickle.dumps(DataFaultsError([fault], 2)))  # noqa: S301 (pickled on the line itself)
    assert (several.faults[0].line, several.faults[0].found, several.more) == (3, "x", 2)
    assert str(several.faults[0]) == "a.jsonl:3: found x, expected y; z"
    error = DataError("a.jsonl", 3, "x of 7", "y")
    assert fields(where="a.jsonl", line=3, found="7", exit_code=2)(error)
    assert not fields(line=4)(error)
    assert not fields(found="8")(error)
