"""Result files of a folder as rows and as a data frame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import StoreError
from bench.fsio import read_sealed
from bench.results import result_files

if TYPE_CHECKING:
    import pandas as pd


def contents(folder: Path) -> list[dict[str, Any]]:
    """The content of every result file, in the order of their paths.

    Raises:
        StoreError: a file that is not as it was written.
    """
    found = []
    for path in result_files(folder):
        try:
            found.append(read_sealed(path))
        except (OSError, ValueError) as error:
            raise StoreError(f"{path} cannot be trusted: {error}; run the command that made it again") from error
    return found


def legs(folder: Path) -> list[dict[str, Any]]:
    """One row a scored leg: what it is, and each measure as a column (fractions); averages follow their tasks."""
    rows: list[dict[str, Any]] = []
    for content in contents(folder):
        about = {
            "system": content["system"]["label"],
            "suite": content["suite"]["name"],
            "setting": content["setting"],
            "data": content["data"],
            "seed": content["seed"],
        }
        for task, parts in content["tasks"].items():
            for leg, entry in parts.items():
                rows.append(
                    {**about, "task": task, "leg": leg or None, "queries": entry["queries"], **entry["measures"]}
                )
        rows += [
            {**about, "task": average["name"], "leg": None, "queries": None, **average["measures"]}
            for average in content["macro"]
        ]
    return rows


def frame(folder: Path) -> pd.DataFrame:
    """The rows of `legs` as a data frame, for notebooks; measures are float64 columns of fractions."""
    import pandas as pd

    return pd.DataFrame(legs(folder))
