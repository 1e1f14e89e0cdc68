"""Labels: what systems are called in tables, paths and run files."""

import re
from collections.abc import Sequence

from bench.config.grids import is_default_layer
from bench.config.layers import SettingRow, describe
from bench.core.errors import UsageError
from bench.core.system_graph import Graph, graph_differences
from bench.pipeline.public_names import FOLDER_PREFIX, public
from bench.pipeline.settings import Variant
from bench.pipeline.systems.system import LONGEST_LABEL

_LABEL = re.compile(rf"[A-Za-z0-9][A-Za-z0-9@._+=,-]{{0,{LONGEST_LABEL - 1}}}")


def labels(variants: Sequence[Variant], label: str | None) -> list[str]:
    """Return the labels of methods with their settings.

    A label given by the user names the only system, or follows each method's name where there are several. Without one,
    settings that differ from their defaults are the name: `bm25@k1=1.2`, or `bm25@PRESET` for an unchanged preset. The
    cells of a grid are called `ccp@table5=no-bn`, or `LABEL=no-bn`. Raises `UsageError` for a label that cannot stand
    in a table, a path and a run file.
    """
    several = len({variant.method.name for variant in variants}) > 1
    names = []
    for variant in variants:
        method, grid = variant.method, variant.grid
        if label is None:
            name = _default_label(variant)
        else:
            name = f"{method.name}@{label}" if several else label
            name = f"{name}={grid.cell}" if grid else name
            if not _LABEL.fullmatch(label) or not _LABEL.fullmatch(name):
                raise UsageError(
                    f"found --label {label!r}, expected up to 80 letters, digits and @ . _ + = , - without blanks, "
                    "the first a letter or digit" + (f" (it makes {name})" if name != label else "")
                )
        names.append(name)
    return names


def distinct_label(label: str, graph: Graph, rival: Graph) -> str:
    """Return a label that says in what a system differs from another of that label, whatever section it is in."""
    unlike = graph_differences(graph, rival)
    values = dict.fromkeys(f"{key.rpartition('.')[2]}={mine}" for key, (mine, _) in unlike.items())
    return _fit(f"{label}@{','.join(values)}")


def _default_label(variant: Variant) -> str:
    """The method's name and what is not as by default; of a cell, its name and what was changed over it."""
    method, resolved, grid = variant.method, variant.resolved, variant.grid
    setting_rows = describe(resolved.method, resolved.origins, "method.")

    def assignment(row: SettingRow) -> str:
        value = public(str(row.value), variant.public_names).removeprefix(FOLDER_PREFIX)
        return f"{row.key.removeprefix('method.')}={value}"

    if grid:  # also a value that is the default's, for the cell may have said another
        changed = [assignment(row) for row in setting_rows if not is_default_layer(row)]
        return _fit(",".join([grid.label, *changed]))
    # A profile stands in the heading of a result, so its values are no part of the name.
    rows = [row for row in setting_rows if row.value != row.default and not row.origin.startswith("profile ")]
    origins = {row.origin for row in rows}
    if not rows:
        return method.name
    if len(origins) == 1 and (preset := next(iter(origins))).startswith("preset "):
        return f"{method.name}@{preset.removeprefix('preset ')}"
    return _fit(f"{method.name}@{','.join(map(assignment, rows))}")


def _fit(name: str) -> str:
    """A name as tables, paths and run files can carry it."""
    return re.sub(r"[^A-Za-z0-9@._+=,-]+", "-", name)[:LONGEST_LABEL]
