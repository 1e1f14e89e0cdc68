"""Result files of a folder as checked results with their per-query values.

A seal shows that a file is as it was written, not that who wrote it meant well: what a site is built from is checked
here once (names, sizes, numbers), and everything behind relies on it.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ValidationError

from bench.core.errors import StoreError, UsageError
from bench.core.files import Fault, read_sealed, sha256_file
from bench.core.messages import unknown_name
from bench.evaluation.results.format import (
    ACCEPTED,
    CARDS,
    RESULT,
    SCHEMA,
    Accepted,
    Cards,
    Content,
    PerQuery,
    bundle_folder,
    place,
)
from bench.evaluation.results.identity import identity_error

LARGEST = 64 << 20
"""Bytes of a file of a bundle, unpacked; ten times what the largest task needs."""

FloatArray = npt.NDArray[np.float64]
Part = TypeVar("Part", bound=BaseModel)


def came_trained(system: Mapping[str, Any]) -> bool:
    """Return, from what a result says of its system whether the encoder was trained elsewhere."""
    return system.get("deterministic") is True and bool(system.get("encoder_config")) and system.get("budget") is None


@dataclass(frozen=True)
class Result:
    """A checked result file and its bundle."""

    path: Path
    content: Content

    @cached_property
    def whole(self) -> Mapping[str, Any]:
        """All that the file holds, also what the format leaves free: of that, no type is promised."""
        return read_result(self.path)

    def tested(self) -> Result:
        """Return it without dev tasks; its file is not read again."""
        result = replace(self, content=self.content.tested())
        vars(result)["whole"] = self.whole
        return result

    @property
    def deterministic(self) -> bool:
        """Whether its system gives the same numbers with every seed."""
        return self.whole["system"].get("deterministic") is True

    @property
    def came_trained(self) -> bool:
        """Whether its encoder was trained elsewhere: one training, of which no other is at hand."""
        return came_trained(self.whole["system"])

    @cached_property
    def card(self) -> str:
        """The suite's protocol card, Markdown. Raises `StoreError` for a bundle that is not as it was written."""
        return _model(Cards, self._file(CARDS), self.path.parent / CARDS).suite

    @cached_property
    def accepted(self) -> Accepted | None:
        """What was found when this state of the result was taken in from elsewhere, else None. Raises `StoreError`."""
        path = self.path.parent / ACCEPTED
        try:
            checked = Accepted.model_validate(read_sealed(path))
            return checked if checked.result == sha256_file(self.path) else None
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise _fault(path, error) from error
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(f"{path} cannot be trusted: {error}; remove it, or add the result again") from error

    def values(self, task: str, subset: str, measure: str) -> tuple[tuple[str, ...], FloatArray]:
        """Return query ids, in their byte order, and a measure's value for each; errors as for `columns`."""
        queries, columns = self.columns(task, subset, [measure])
        return queries, columns[measure]

    def columns(self, task: str, subset: str, measures: Iterable[str]) -> tuple[tuple[str, ...], dict[str, FloatArray]]:
        """Return query ids, in byte order, and values of measures. Raises `StoreError` for a file that does not fit."""
        table = self.per_query(task, subset)
        order = sorted(range(len(table.queries)), key=table.queries.__getitem__)
        columns = {measure: self._column(table, task, subset, measure)[order] for measure in measures}
        return tuple(table.queries[place] for place in order), columns

    def _column(self, table: PerQuery, task: str, subset: str, measure: str) -> FloatArray:
        """Return the values of a measure in the order of the file."""
        column = table.measures.get(measure, [])
        path, scores = self.path.parent / place("per-query", task, subset), self.content.tasks[task][subset]
        if len(column) != scores.queries:
            raise StoreError(
                f"{path}: found {len(column):,} values of {measure}, expected one for each of {scores.queries:,} "
                f"queries; {_REPAIR}"
            )
        values = np.array(column)
        if abs(float(values.mean()) - scores.measures[measure]) > 1e-6:
            raise StoreError(
                f"{path}: found a mean {measure} of {values.mean():.6f}, expected {scores.measures[measure]:.6f} as in "
                f"{RESULT}; {_REPAIR}"
            )
        return values

    def per_query(self, task: str, subset: str) -> PerQuery:
        """Return the values of a subset, each query once. Raises `StoreError` for a file that is not so, or damaged."""
        name = place("per-query", task, subset)
        path = self.path.parent / name
        table = _model(PerQuery, unpacked(self._file(name), path), path)
        count = self.content.tasks[task][subset].queries
        if not len(table.queries) == len(set(table.queries)) == count:
            raise StoreError(
                f"{path}: found {len(table.queries):,} queries, {len(set(table.queries)):,} of them different, "
                f"expected {count:,}; {_REPAIR}"
            )
        return table

    def _file(self, name: str) -> bytes:
        """Read a file of the bundle, which must have the checksum that the result names."""
        path = self.path.parent / name
        try:
            if path.stat().st_size > LARGEST:
                raise StoreError(f"{path}: found {path.stat().st_size:,} bytes, expected at most {LARGEST:,}")
            if sha256_file(path) != self.content.files.get(name):
                raise StoreError(f"{path}: found other bytes than {RESULT} names; {_REPAIR}")
            return path.read_bytes()
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}; {_REPAIR}") from error


_REPAIR = "run the command that made it again, or take its folder away"


def _model(kind: type[Part], raw: bytes, path: Path) -> Part:
    """Parse JSON as a model. Raises `StoreError` with the first fault."""
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        raise _fault(path, error) from error


def _fault(path: Path, error: ValidationError) -> StoreError:
    """Return the error that says where the first fault is, and what was expected there."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"])) or "file"
    return StoreError(f"{path}: found a fault at {place!a}, expected: {first['msg']}; {_REPAIR}")


def unpacked(packed: bytes, path: Path) -> bytes:
    """Unpack a gzip file. Raises `StoreError` where it is damaged or larger than `LARGEST`."""
    try:
        with gzip.open(io.BytesIO(packed)) as stream:
            raw = stream.read(LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise StoreError(f"{path} cannot be unpacked: {error}; {_REPAIR}") from error
    if len(raw) > LARGEST:
        raise StoreError(f"{path}: found more than {LARGEST:,} bytes unpacked, expected fewer; {_REPAIR}")
    return raw


def _sealed(paths: Iterable[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every result file with its content."""
    for path in paths:
        try:
            yield path, read_result(path)
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(f"{path} cannot be trusted: {error}; run the command that made it again") from error


def read_result(path: Path) -> dict[str, Any]:
    """Return the content of a result file, which is as it was written and of this version's schema.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is damaged, or was changed since it was written.
        StoreError: the schema is another version's.
    """
    content = read_sealed(path)
    schema = content.get("schema")
    if schema == SCHEMA:
        return content
    number = _VERSION.fullmatch(schema) if isinstance(schema, str) else None
    if number is None:
        hint = "it is no result file of retrieval-bench"
    elif int(number[1]) < _CURRENT:
        hint = "a version before 0.2.0 made it: run its command again, or use that version"
    else:
        hint = "a newer version made it: type `pip install --upgrade retrieval-bench`"
    raise StoreError(where=path, found=f"schema {schema!r:.60}", expected=repr(SCHEMA), hint=hint)


_VERSION = re.compile(r"retrieval-bench/result/([0-9]{1,4})")
_CURRENT = int(SCHEMA.rpartition("/")[2])


def result_files(root: Path) -> list[Path]:
    """Every result file under a results folder, in a fixed order."""
    return sorted(root.rglob(RESULT))


def is_path(name: str) -> bool:
    """Return whether a name is the path of a result; a label may be the name of some other folder."""
    return name.endswith(".json") or (Path(name) / RESULT).is_file()


def result_file(name: str) -> Path:
    """Return the result file of a path. Raises `UsageError` where there is none."""
    path = Path(name) if name.endswith(".json") else Path(name) / RESULT
    if not path.is_file():
        raise UsageError(where=path, found="no such file", expected=f"a {RESULT}; `bench list results` helps")
    return path


def named(name: str, root: Path, suite: str | None = None, seeds: Collection[int] = ()) -> list[Path]:
    """Return the result files of a system.

    Args:
        name: its label, label and hash, or the path of a result.
        root: the folder in which a label is looked up.
        suite: of a label, only results on this suite; default: on all.
        seeds: only results of these seeds; default: of all.

    Raises:
        UsageError: there is none.
    """
    if is_path(name):
        files = list(_sealed([result_file(name)]))
    else:
        of_suite = [file for file in _sealed(result_files(root)) if suite in (None, file[1]["suite"]["name"])]
        files = [file for file in of_suite if name in (file[1]["system"]["label"], file[0].parent.parent.name)]
        if not files:
            labels = sorted({content["system"]["label"] for _, content in of_suite})
            raise unknown_name("system", name, labels, f"results in {root}")
    require_seeds(name, seeds, {content["seed"] for _, content in files})
    return [path for path, content in files if not seeds or content["seed"] in seeds]


def require_seeds(name: str, seeds: Collection[int], existing: Collection[int]) -> None:
    """Raise `UsageError` where a system has results of none of the seeds that were typed."""
    if seeds and not set(seeds) & set(existing):
        listed = ",".join(map(str, sorted(existing)))
        raise UsageError(
            where=name,
            found=f"no results of --seed {','.join(map(str, seeds))}",
            expected=f"those of a seed that it has results of: {listed}",
            hint=f"type --seed {min(existing)}",
        )


def only(name: str, root: Path, suite: str | None = None, seeds: Collection[int] = ()) -> Path:
    """Return the only result file of a system; arguments as for `named`. Raises `UsageError` for several, or none."""
    return one_of(name, named(name, root, suite, seeds))


def one_of(name: str, paths: Sequence[Path], suite: str | None = None, seeds: Collection[int] = ()) -> Path:
    """Return the only result file of some, on a suite and of seeds (default: all). Raises `UsageError` for several."""
    files = [file for file in _sealed(paths) if suite in (None, file[1]["suite"]["name"])]
    require_seeds(name, seeds, {content["seed"] for _, content in files})
    files = [file for file in files if not seeds or file[1]["seed"] in seeds]
    if len(files) == 1:
        return files[0][0]
    raise several(name, "results", files)


def several(name: str, noun: str, files: Sequence[tuple[Path, Mapping[str, Any]]]) -> UsageError:
    """Return the error for a label of several things where one is wanted, with what distinguishes them.

    Args:
        name: as typed.
        noun: what they are called, e.g. `encoders`.
        files: the result file that each comes from, with its content.
    """
    suites = sorted({content["suite"]["name"] for _, content in files})
    seeds = sorted({content["seed"] for _, content in files})
    if len(seeds) == len(files):
        several_of, hint = f"{noun} of the seeds {', '.join(map(str, seeds))}", f"type --seed {seeds[0]}"
    elif len(suites) > 1:
        several_of, hint = f"{noun} on the suites {', '.join(suites)}", f"type --suite {suites[0]}"
    else:
        several_of, hint = f"{len(files)} {noun}", f"name one result: {', '.join(str(path) for path, _ in files)}"
    return UsageError(where=name, found=several_of, expected="one", hint=hint)


def faults(path: Path) -> list[Fault]:
    """What is wrong with a result file or its bundle. Raises `StoreError` for one of another version."""
    try:
        content = read_result(path)
    except (OSError, ValueError) as error:
        return [Fault(path, f"a result that cannot be trusted: {error}")]
    damage = []
    for name, expected in content["files"].items():
        target = path.parent / name
        if not target.is_file():
            damage.append(Fault(target, "no such file"))
        elif (actual := sha256_file(target)) != expected:
            damage.append(Fault(target, f"sha256 {actual[:12]}…, expected {expected[:12]}…"))
    try:
        checked(path, content)
    except StoreError as error:
        damage.append(Fault(path, error.found or str(error)))
    return damage


def keys(root: Path) -> set[str]:
    """The keys of all artefacts that the results of a folder rest on. Raises `StoreError` for another version's."""
    stage_keys: set[str] = set()
    for path in result_files(root):
        with suppress(OSError, ValueError):  # `bench verify` names it; a damaged result protects nothing
            stage_keys |= keys_of(path)
    return stage_keys


def keys_of(path: Path) -> set[str]:
    """The keys of all artefacts that a result rests on. Raises as `read_result` does."""
    subsets = (subset for subsets in read_result(path)["tasks"].values() for subset in subsets.values())
    return {key for subset in subsets for key in subset.get("keys", {}).values()}


def results(folder: Path) -> list[Result]:
    """Return every result of a folder, checked, by path; bundles are not read yet.

    Raises:
        StoreError: a result is damaged, or lies elsewhere than its fields say (`require_place`), or two have the same
            system, seed, suite, regime and data.
    """
    checked_results = [_checked_once(path, content) for path, content in _sealed(result_files(folder))]
    first: dict[Path, Path] = {}
    for result in checked_results:
        require_place(folder, result)
        first_path = first.setdefault(bundle_folder(result.whole), result.path)
        if first_path != result.path:
            raise StoreError(
                where=result.path,
                found=f"the system, seed, suite, regime and data of {first_path}",
                expected="one result file of each",
                hint="remove one of them, or compare folders of their own with --results",
            )
    return checked_results


def require_place(root: Path, result: Result) -> None:
    """Raise `StoreError` where a result lies in another folder than its fields name.

    A copy next to the original would count as one more training. As much of the place is compared as lies below `root`,
    which may be a folder of results folders, or one inside of one.
    """
    expected = bundle_folder(result.whole).parts
    actual = result.path.parent.resolve().relative_to(root.resolve()).parts
    depth = min(len(expected), len(actual))
    if depth and actual[-depth:] != expected[-depth:]:
        raise StoreError(
            where=result.path,
            found=f"the result of {'/'.join(expected)}",
            expected="a folder of that name",
            hint="a copy is not another seed: move it back or remove it",
        )


def result(path: Path) -> Result:
    """Return the result of a file, checked; errors as for `results`."""
    ((_, content),) = _sealed([path])
    return _checked_once(path, content)


def _checked_once(path: Path, content: dict[str, Any]) -> Result:
    """Return the result of a file that was just read, which `Result.whole` need not read again."""
    result = checked(path, content)
    vars(result)["whole"] = content
    return result


def checked(path: Path, content: Mapping[str, Any]) -> Result:
    """Check the content of a result file against the format, and that it is what its name says. Raises `StoreError`."""
    try:
        result = Result(path, Content.model_validate(content))
    except ValidationError as error:
        raise _fault(path, error) from error
    if unlike := identity_error(content):
        expected = "one system, with one encoder for all its tasks"
        raise StoreError(where=path, found=unlike, expected=expected, hint=_REPAIR)
    return result
