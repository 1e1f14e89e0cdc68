"""Mr. TyDi v1.0: a version of its own, read through ir_datasets and never mixed with v1.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.core.errors import UsageError
from bench.types import DataRequest
from suites import mrtydi, mrtydi_v1_0


def test_versions_have_ids_and_records_of_their_own(tmp_path: Path) -> None:
    """Ids, readers and the recorded release differ from v1.1's; counts are those of the table."""
    task = mrtydi_v1_0.SUITE.load("sw", DataRequest("official"))
    (leg,) = task.legs
    assert (task.id, task.release, leg.corpus.id) == ("mrtydi-v1-0/sw", "v1.0", "mrtydi-v1-0/sw")
    assert (leg.counts, leg.corpus.documents) == ({"queries": 670, "qrels": 743}, 136_689)
    assert leg.qrels is not None
    assert [":mr-tydi/sw/test:" in source.reader for source in (leg.queries, leg.qrels, leg.corpus.items)] == [True] * 3
    assert mrtydi_v1_0.BENCHMARK.load_dev("sw", DataRequest("official")).id == "mrtydi-v1-0/sw@dev"
    members = {member for macro in mrtydi_v1_0.SUITE.macros for member in macro.members}
    assert not members & {member for macro in mrtydi.SUITE.macros for member in macro.members}


def test_nothing_is_downloaded_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says how much would be fetched, and what else there is."""
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path))
    with pytest.raises(UsageError, match=r"10,452,957 bytes.*run mrtydi"):
        mrtydi_v1_0.SUITE.load("sw", DataRequest("official", tmp_path, offline=True))


def test_the_library_knows_the_data_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every id that is asked of ir_datasets is in its catalogue, with the published number of passages."""
    import ir_datasets

    for name, one in mrtydi.LANGUAGES.items():
        found: Any = ir_datasets.load(f"mr-tydi/{name}/test")
        assert found.has_docs()
        assert found.has_queries()
        assert found.metadata()["docs"]["count"] == one.passages
        assert found.metadata()["queries"]["count"] == one.counts["test"][0]
