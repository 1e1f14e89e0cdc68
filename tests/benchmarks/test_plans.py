"""The pages on what plans say and runs take are those of their records."""

import json
from types import ModuleType

import pytest

from experiments import plans, signed_plans


@pytest.mark.parametrize("module", [plans, signed_plans], ids=["times", "resources"])
def test_the_page_is_that_of_its_record(module: ModuleType) -> None:
    """Nobody has edited it, and every plan that the command makes has a row."""
    record = json.loads(module.RECORD.read_bytes())
    names = [name[1] if isinstance(name, tuple) else name for name in module.PLANS]
    assert [*record["plans"]] == names
    assert module.PAGE.read_text(encoding="utf-8") == module.page(record)
