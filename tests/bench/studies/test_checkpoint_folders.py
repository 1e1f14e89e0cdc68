"""Folders of `checkpoint-N` from elsewhere, as variants of a request."""

from pathlib import Path

import pytest

from bench.config.request import Request, RequestVariant
from bench.core.errors import UsageError
from bench.studies.checkpoint_folders import checkpoints, with_checkpoints
from bench.testing import fields


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    for name in ("checkpoint-1000", "checkpoint-20", "checkpoint-x", "runs"):
        (tmp_path / "mine" / name).mkdir(parents=True)
    (tmp_path / "mine" / "checkpoint-7").write_text("a file")
    return tmp_path / "mine"


def test_each_checkpoint_is_a_system(mine: Path) -> None:
    """By number, not by name; other folders and files are none; methods next to them keep their options."""
    assert [item.steps for item in checkpoints(mine)] == [20, 1000]
    request = Request((str(mine), "crop"), ("mrtydi",), backbone="scratch:1x16", sets=("search.k=7",))
    expanded = with_checkpoints(request)
    assert list(expanded.checkpoints) == ["pretrained@mine-20", "pretrained@mine-1000"]
    others, *each = expanded.request.each().values()
    assert (others.methods, others.backbone, others.sets) == (("crop",), "scratch:1x16", ("search.k=7",))
    assert [(part.methods, part.backbone, part.label) for part in each] == [
        (("pretrained",), None, "pretrained@mine-20"),
        (("pretrained",), None, "pretrained@mine-1000"),
    ]
    assert each[1].sets == ("search.k=7", f'method.model="{mine / "checkpoint-1000"}"')
    assert with_checkpoints(Request(("crop",), ("mrtydi",))).request == Request(("crop",), ("mrtydi",))


def test_what_cannot_be_told_apart_is_refused(mine: Path, tmp_path: Path) -> None:
    (tmp_path / "other" / "mine" / "checkpoint-20").mkdir(parents=True)
    with pytest.raises(UsageError, check=fields(found="folders of one name", hint="rename one")):
        with_checkpoints(Request((str(mine), str(tmp_path / "other" / "mine")), ("mrtydi",)))
    with pytest.raises(UsageError, check=fields(expected="each by itself", hint="bench curve FOLDER")):
        with_checkpoints(Request((str(mine),), ("mrtydi",), label="ours"))
    variant = RequestVariant("a variant", {"methods": ["crop", str(mine)]})
    with pytest.raises(UsageError, check=fields(expected="each by itself", hint="bench curve FOLDER")):
        with_checkpoints(Request((), ("mrtydi",), variants=(variant,)))
