"""A method's doors and card: given as callables, or by name and imported when they are needed."""

from dataclasses import replace
from typing import cast

import pytest

from bench.config.base import Config
from bench.core.errors import PluginError
from bench.testing import fields
from bench.types import Method, Retriever

METHOD = Method("some", "1", "A method.", "nobody", Config)


def test_a_door_is_a_callable_or_its_name() -> None:
    """Both build the same from a config; a card is a package's README, a function's, or summary and citation."""
    by_name = replace(METHOD, retriever="fractions:Fraction")
    halved = replace(METHOD, retriever=lambda config: cast(Retriever, config / 2))
    assert by_name.build_retriever("1/2") == halved.build_retriever(1)
    assert replace(METHOD, describe="methods.crop").card().startswith("# ")
    assert replace(METHOD, describe=lambda: "# Card").card() == "# Card"
    assert METHOD.card() == "# some\n\nA method.\n\nnobody\n"


@pytest.mark.parametrize(("door", "found"), [(None, "none"), ("fractions:Nothing", "'fractions:Nothing'")])
def test_a_door_that_is_not_there_is_an_error(door: str | None, found: str) -> None:
    """It names the method and what was found."""
    with pytest.raises(PluginError, check=fields(where="trainer of some", found=found)):
        replace(METHOD, trainer=door).build_trainer(None)
