"""Results: the open format as models, its writer, its reader, and averages over tasks."""

from bench.evaluation.results.averages import Stratum, averages, headline, shares, task_value
from bench.evaluation.results.format import CARDS, CURVES, RESULT, SCHEMA, Content
from bench.evaluation.results.read import Result, faults, keys, result_files, results
from bench.evaluation.results.write import Entry, Heading, Published, publish

__all__ = [
    "CARDS",
    "CURVES",
    "RESULT",
    "SCHEMA",
    "Content",
    "Entry",
    "Heading",
    "Published",
    "Result",
    "Stratum",
    "averages",
    "faults",
    "headline",
    "keys",
    "publish",
    "result_files",
    "results",
    "shares",
    "task_value",
]
