"""retrieval-bench: pretraining methods for multilingual dense retrieval, compared under one protocol.

The public API, nothing else; importing it is light, and every name is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.core.lazy import lazy

if TYPE_CHECKING:
    from bench.api import compare as compare
    from bench.api import curve as curve
    from bench.api import export as export
    from bench.api import load_results as load_results
    from bench.api import plan as plan
    from bench.api import race as race
    from bench.api import run as run
    from bench.api import score as score
    from bench.config.base import Config as Config
    from bench.config.base import constant as constant
    from bench.config.base import setting as setting
    from bench.config.request import Request as Request
    from bench.config.request import RunPreset as RunPreset
    from bench.config.spaces import Choice as Choice
    from bench.config.spaces import LogUniform as LogUniform
    from bench.config.spaces import Uniform as Uniform
    from bench.core.caches import private_cache_folder as private_cache_folder
    from bench.core.children import map_in_processes as map_in_processes
    from bench.core.children import worker_loop as worker_loop
    from bench.core.errors import BenchError as BenchError
    from bench.core.errors import ConfigError as ConfigError
    from bench.core.errors import DataError as DataError
    from bench.core.errors import UsageError as UsageError
    from bench.core.files import canonical as canonical
    from bench.core.messages import did_you_mean as did_you_mean
    from bench.core.messages import unknown as unknown
    from bench.core.network import is_offline as is_offline
    from bench.core.order import best as best
    from bench.core.order import cast_scores as cast_scores
    from bench.core.order import top_k_positions as top_k_positions
    from bench.core.workspace import Workspace as Workspace
    from bench.data.formats.string_array import StringArray as StringArray
    from bench.data.formats.string_array import write_strings as write_strings
    from bench.hookspecs import hookimpl as hookimpl
    from bench.types import Corpus as Corpus
    from bench.types import Footprint as Footprint
    from bench.types import GridCell as GridCell
    from bench.types import Item as Item
    from bench.types import Json as Json
    from bench.types import Judgement as Judgement
    from bench.types import Macro as Macro
    from bench.types import Measure as Measure
    from bench.types import Method as Method
    from bench.types import Preset as Preset
    from bench.types import PretrainingCorpus as PretrainingCorpus
    from bench.types import Ranking as Ranking
    from bench.types import Retriever as Retriever
    from bench.types import Run as Run
    from bench.types import Source as Source
    from bench.types import Subset as Subset
    from bench.types import Suite as Suite
    from bench.types import Task as Task
    from bench.types import Tie as Tie
    from bench.types import declared as declared

__all__, __getattr__, __dir__ = lazy(__name__, __file__)
