"""What commands print of downloads and of the task to begin with, one line each."""

from typing import Any

from bench.cli.output import size_text
from bench.evaluation.tables import duration
from bench.pipeline.downloads import Download
from bench.pipeline.first_look import FirstTask

_FIELDS = ("kind", "name", "files", "bytes", "unknown", "licence", "command")


def amount_text(bytes_known: int, unknown: int) -> str:
    """Return bytes as people read them, with the files whose size nobody says."""
    if not unknown:
        return size_text(bytes_known)
    return f"{size_text(bytes_known)} and {unknown} of unknown size" if bytes_known else "size unknown"


def download_text(download: Download) -> str:
    """Return what a run is about to fetch by itself: name, size, licence and place."""
    names = {"model": "the model ", "ir_datasets": "by ir_datasets ", "hub data": "the data set "}
    amount = amount_text(download.bytes, download.unknown)
    subject = f"{names.get(download.kind, '')}{download.name}"
    return f"fetches {subject}: {amount}; licence: {download.licence}; into {download.into}"


def download_json(download: Download) -> dict[str, Any]:
    """Return a download's entry in `--json`."""
    fields = {name: getattr(download, name) for name in _FIELDS}
    return {**fields, "into": str(download.into)}


def first_task_text(first: FirstTask) -> str:
    """Return the task to begin with, and what it saves."""
    return (
        f"to begin with: --suite {first.suite} --task {first.task}, {first.questions:,} questions: "
        f"{duration(first.seconds)} instead of {duration(first.of)}"
    )
