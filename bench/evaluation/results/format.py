"""The open format: what a result file and the files of its bundle hold, as models, and as a JSON Schema document.

A bundle is a folder::

    result.json                        this model, sealed (see `bench.core.files.write_sealed`)
    cards.json                         the method's and the suite's cards
    per-query/TASK[/SUBSET].json.gz       `PerQuery`: every judged query, also those without hits
    runs/TASK[/SUBSET].trec.gz            the run, cut at the deepest measure; or elsewhere, see `Remote`
    runs/TASK[/SUBSET].trec.gz.empty      the queries that found nothing, an id a line; only where there are some
    accepted.json                      `Accepted`: written by who took the result in, never by who made it

Keys that are not named here may come and go without a new version of the format.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from bench.core.messages import bare
from bench.core.names import is_name_character, one_place
from bench.data.formats.trec import empty_file
from bench.types import Parallel

DEV = "@dev"
"""What names of tasks on dev questions end with."""

SCHEMA = "retrieval-bench/result/2"
ACCEPTED_SCHEMA = "retrieval-bench/accepted/2"
RESULT, CARDS, CURVES = "result.json", "cards.json", "curves.json"
ACCEPTED = "accepted.json"
"""The record of a result that was taken in from elsewhere, next to its result file."""


def _path(name: str) -> str:
    if {"", ".", ".."} & set(name.split("/")):
        raise ValueError("a name that leads out of its folder")
    return name


def _spelling(name: str) -> str:
    if not unicodedata.is_normalized("NFC", name):
        raise ValueError("a name that is not in NFC")
    if not all(char.isascii() or is_name_character(char) for char in name):
        raise ValueError("a character that is no letter, mark or digit")
    return name


Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=200)]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
MethodName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,199}$")]
"""A method's, or those of systems that were fused: `bm25+crop`."""
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")]
TaskId = Annotated[
    str,
    Field(pattern=r"^([A-Za-z0-9._+/-]|[^\x00-\x7f]){1,200}(@dev)?$"),
    AfterValidator(_path),
    AfterValidator(_spelling),
]
"""In NFC; letters, marks and digits of other scripts than Latin are in names of local data alone."""
SubsetName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9._+-]{0,80}$"), AfterValidator(lambda name: name and _path(name))
]
FileName = Annotated[
    str,
    Field(pattern=r"^([A-Za-z0-9@._+/-]|[^\x00-\x7f]){1,300}$"),
    AfterValidator(_path),
    AfterValidator(_spelling),
]


class _Model(BaseModel):
    """A part of a result; keys that the site does not show may come and go."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class Setting(_Model):
    """One setting of a system: its value and the layer that set it."""

    key: Text
    value: Any = None
    origin: Text


class Origin(_Model):
    """What a dense system was pretrained on."""

    name: Text


class Processing(_Model):
    """What was done to vectors after encoding, and the corpus that it was fitted on."""

    kind: Word
    corpus: Origin


class Reranking(_Model):
    """The cross-encoder that re-ranks its runs; `backbone` and `corpus` are there where it was trained for it."""

    model: Text
    backbone: Text | None = None
    corpus: Origin | None = None


class GridReference(_Model):
    """The cell of an ablation's grid that a system is, or what it varies of the system with the hash `default`."""

    preset: Text
    cell: Text
    default: Hash | None = None


class FusedPart(_Model):
    """A system whose run was fused with another's."""

    method: MethodName
    version: Text
    vectors: Literal["", "float16"] = ""
    backbone: Text | None = None
    corpus: Origin | None = None
    budget: int | None = None
    budget_flops: float | None = None
    budget_steps: int | None = None


class PointAbout(_Model):
    """A point on the way of a pretraining, after a share of the budget; `cool` of that a branch took besides."""

    kind: Literal["along", "cooled"]
    share: Fraction
    cool: Fraction | None = None


class About(_Model):
    """A system. `backbone`, `corpus`, `budget`, `readout` and `post` are there for dense systems only.

    `vectors` is the precision in which those of passages were stored, empty for float32.

    `graph` holds the stages that make it (`bench.core.system_graph`), of which `hash` is the digest; `untuned_hash` is
    that of the same system without fine-tunings.
    """

    label: Annotated[str, Field(min_length=1, max_length=200)]
    hash: Hash
    untuned_hash: Hash
    graph: Annotated[dict[Text, Any], Field(min_length=1)]
    method: MethodName
    version: Text
    settings: list[Setting] = []
    backbone: Text | None = None
    corpus: Origin | None = None
    budget: int | None = None
    budget_flops: float | None = None
    budget_steps: int | None = None
    readout: dict[Text, Any] = {}
    vectors: Literal["", "float16"] = ""
    post: Processing | None = None
    rerank: Reranking | None = None
    grid: GridReference | None = None
    point: PointAbout | None = None
    parts: Annotated[list[FusedPart], Field(max_length=10)] = []


class SuiteAbout(_Model):
    """A suite; `primary` is its headline measure, where the result says it.

    `proxy_for` is the benchmark that it is a substitute for, empty for a benchmark itself; `parallel` says where
    queries of one id ask one question (`bench.types.Suite`).
    """

    name: Word
    version: Text
    title: Text
    primary: Text | None = None
    proxy_for: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,79})?$")] = ""
    parallel: Parallel = ""


class Average(_Model):
    """An average over tasks by measure; `members` are task ids without `mini/` and its like, lists are means."""

    name: Text
    note: Annotated[str, Field(max_length=2000)] = ""
    measures: dict[Text, Fraction]
    members: list[Any] | None = None


class Passport(_Model):
    """What a scored subset was computed from, as digests; rows with unlike ones are not compared or averaged.

    `queries`, `judgements` and `corpus` are of the bytes of files and who reads them; those in `published` are the
    release's files, by its sha256. `weights` is of the source of all weights that were not trained here from random
    ones: commits of a hub, files of a folder; null where there are none. `code` holds the version of each stage's code
    and of measures that plugins compute. Libraries and the machine are named next to the passport.
    """

    queries: Digest
    judgements: Digest
    corpus: Digest
    weights: Digest | None
    code: Annotated[dict[Text, int | list[int] | Text], Field(min_length=1, max_length=100)]
    published: list[Literal["queries", "judgements", "corpus"]] = []


class Subset(_Model):
    """A scored subset; `official` is what official scorers say where they do otherwise than our measures.

    `official_queries` says over how many queries such a value is, where its scorer left out those that the run does
    not name.
    `settings` are the harness's own that are not as by default. `metadata` and `keys` are by stage: what it measured of
    itself, and what identifies its output.
    """

    measures: Annotated[dict[Text, Fraction], Field(min_length=1, max_length=100)]
    official: Annotated[dict[Text, Fraction], Field(max_length=100)] = {}
    official_queries: Annotated[dict[Text, int], Field(max_length=100)] = {}
    queries: Annotated[int, Field(ge=1)]
    protocol: dict[str, Any] = {}
    release: Text = ""
    measures_by: Text = ""
    settings: list[Setting] = []
    libraries: dict[Text, Text] = {}
    metadata: dict[Text, Any] = {}
    keys: dict[Text, Text] = {}
    passport: Passport | None = None


class Remote(_Model):
    """A run that is too large for the bundle: where it lies, and the bytes that it must have."""

    url: Annotated[str, Field(pattern=r"^https://[!-~]+$", max_length=1000)]
    sha256: Sha256
    bytes: Annotated[int, Field(ge=1, le=1 << 36)]


class Content(_Model):
    """A result file: a system on the tasks of one suite, in one regime, on data of one kind, with one seed."""

    system: About
    suite: SuiteAbout
    regime: Literal["unsupervised", "english", "multilingual", "few-shot"]
    data: Annotated[str, Field(pattern=r"^(official|local|mini(-[a-z]+)*)$", max_length=80)]
    profile: Word
    seed: Annotated[int, Field(ge=0)]
    macro: list[Average]
    tasks: Annotated[
        dict[TaskId, Annotated[dict[SubsetName, Subset], Field(min_length=1)]], Field(min_length=1, max_length=1000)
    ]
    files: dict[str, str]
    remote: dict[FileName, Remote] = {}

    @model_validator(mode="after")
    def _mini_says_so(self) -> Content:
        """Mini numbers must never pass for official ones, nor for another world's, nor the other way round."""
        mark = "" if self.data in {"official", "local"} else f"{self.data}/"
        for task in self.tasks:
            if task != mark + bare(task):
                raise ValueError(f"task {task} in a result of {self.data} data")
        return self

    @model_validator(mode="after")
    def _tasks_have_places(self) -> Content:
        """Names in other scripts are a user's own; two that differ in case alone are one file on some systems."""
        for task in self.tasks:
            if self.data != "local" and not task.isascii():
                raise ValueError(f"task {task} in a result of {self.data} data, whose names are ASCII")
        if clash := one_place(self.tasks):
            raise ValueError(f"tasks {clash[0]} and {clash[1]}, which differ in case alone")
        return self

    def tested(self) -> Content:
        """The same without dev tasks: settings are chosen by their questions, so nobody is ranked by them."""
        test_tasks = {task: subsets for task, subsets in self.tasks.items() if not task.endswith(DEV)}
        return self.model_copy(update={"tasks": test_tasks})

    @property
    def averages(self) -> list[Average]:
        """The suite's own averages; the mean of a task's subsets, which bears the task's name, is none of them."""
        return [average for average in self.macro if average.name not in self.tasks]


class PerQuery(_Model):
    """The values of a subset: a query at each place of `queries`, and its value at the same place of each measure."""

    queries: list[Text]
    measures: dict[Text, list[Fraction]]


class Cards(_Model):
    """The cards as they were when the result was made."""

    suite: Annotated[str, Field(max_length=100_000)] = ""


class Accepted(_Model):
    """What was found when a result was taken in.

    `result` is the sha256 of the result file that was looked at; `recomputed` names measures by task and subset, and
    `not_recomputed` says of the others why they were taken on trust.
    """

    result: Sha256
    version: Text
    date: Text
    recomputed: dict[TaskId, dict[SubsetName, list[Text]]]
    not_recomputed: dict[TaskId, dict[SubsetName, dict[Text, Annotated[str, Field(max_length=2000)]]]]

    @property
    def said(self) -> str:
        """What the board says of it, in a sentence."""
        recomputed = sum(len(names) for subsets in self.recomputed.values() for names in subsets.values())
        reasons = [
            why for subsets in self.not_recomputed.values() for names in subsets.values() for why in names.values()
        ]
        if not reasons:
            return "recomputed from its runs and the judgements"
        why = "; ".join(dict.fromkeys(reasons))
        count = f"{len(reasons):,} of {recomputed + len(reasons):,} numbers" if recomputed else "its numbers"
        return f"{count} could not be recomputed: {why}"


class _File(Content):
    """A result file with its version and its seal."""

    format_: Literal["retrieval-bench/result/2"] = Field(alias="schema")
    seal: Sha256


def bundle_folder(content: Mapping[str, Any]) -> Path:
    """Return the place under a results folder of a result with these fields: data, suite, regime, system and seed."""
    system = content["system"]
    label = re.sub(r"[^A-Za-z0-9._@+=-]+", "-", str(system["label"]))
    name = f"{label}-{str(system['hash'])[:8]}"
    data, suite, regime = (str(part) for part in (content["data"], content["suite"]["name"], content["regime"]))
    return Path(data, suite, regime, name, f"seed-{content['seed']}")


def place(kind: Literal["runs", "per-query"], task: str, subset: str) -> str:
    """Where the run or the per-query values of a subset lie in a bundle."""
    return f"{kind}/{task}{'/' + subset if subset else ''}.{'trec.gz' if kind == 'runs' else 'json.gz'}"


def silent_place(task: str, subset: str) -> str:
    """Where the queries of a subset that found nothing lie in a bundle, next to its run."""
    return empty_file(Path(place("runs", task, subset))).as_posix()


def document() -> dict[str, Any]:
    """The format as JSON Schema: the result file itself, and under `$defs` the other files of a bundle."""
    schema = _File.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
    inner: dict[str, Any] = dict(schema.pop("$defs", {}))
    for part in (PerQuery, Cards, Accepted):
        part_schema = part.model_json_schema(ref_template="#/$defs/{model}")
        inner |= part_schema.pop("$defs", {})
        inner[part.__name__] = part_schema
    schema.pop("title", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{SCHEMA.replace('/', ':')}",
        "title": SCHEMA,
        **schema,
        "description": (__doc__ or "").strip(),
        "$defs": dict(sorted(inner.items())),
    }


def rendered() -> str:
    """The document as the repository keeps it and `bench leaderboard schema` prints it."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
