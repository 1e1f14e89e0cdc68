"""The public face for suites: whatever a benchmark is made of beyond the words of `bench` itself.

Readers of general formats (`aligned`, `beir`, `irds`, `trec`) and the parts that readers of a suite's own files are
made of (`jsonl` has those of JSON), training pairs, official files (`official`), the embedded world (`mini`), measures
for official scorers. Importing it is light: every name is loaded when it is first asked for, and none needs torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.core.lazy import lazy

if TYPE_CHECKING:
    from bench.core.encoder_config import SEPARATOR as SEPARATOR
    from bench.core.files import write_bytes as write_bytes
    from bench.core.names import safe_name as safe_name
    from bench.core.order import order as order
    from bench.core.publications import Release as Release
    from bench.core.publications import Reported as Reported
    from bench.core.publications import Unit as Unit
    from bench.core.publications import mark as mark
    from bench.data import mini as mini
    from bench.data.fetching import official as official
    from bench.data.formats import aligned as aligned
    from bench.data.formats import beir as beir
    from bench.data.formats import irds as irds
    from bench.data.formats import irds_catalogue as irds_catalogue
    from bench.data.formats import jsonl as jsonl
    from bench.data.formats import trec as trec
    from bench.data.formats.archive import File as File
    from bench.data.formats.archive import Member as Member
    from bench.data.formats.faults import Faults as Faults
    from bench.data.formats.faults import RecordError as RecordError
    from bench.data.formats.faults import shown as shown
    from bench.data.formats.source import FileSource as FileSource
    from bench.data.formats.source import Format as Format
    from bench.data.formats.source import check_id as check_id
    from bench.data.formats.source import duplicate_error as duplicate_error
    from bench.data.formats.source import file_source as file_source
    from bench.data.formats.source import numbered_source as numbered_source
    from bench.data.formats.source import query_label as query_label
    from bench.data.formats.source import records as records
    from bench.data.formats.text import lines as lines
    from bench.data.mini.records import Answering as Answering
    from bench.data.mini.settings import WorldSettings as WorldSettings
    from bench.data.pairs import concatenate as concatenate
    from bench.data.pairs import dpr as dpr
    from bench.data.pairs import from_subset as from_subset
    from bench.data.pairs import irds_pairs as irds_pairs
    from bench.data.pairs import load_pairs as load_pairs
    from bench.data.pairs import squad as squad
    from bench.data.pairs import with_dev as with_dev
    from bench.data.pairs import without_leaks as without_leaks
    from bench.data.pairs import without_test_questions as without_test_questions
    from bench.data.pairs.leaks import TABLE as TABLE
    from bench.data.pairs.sources import PairOutcome as PairOutcome
    from bench.data.pairs.sources import PairSource as PairSource
    from bench.data.pairs.sources import pair as pair
    from bench.data.pairs.sources import pair_source as pair_source
    from bench.data.pairs.sources import reader as reader
    from bench.data.pairs.sources import with_unique_queries as with_unique_queries
    from bench.evaluation.measures.builtin import average_precision as average_precision
    from bench.evaluation.measures.builtin import precision as precision
    from bench.evaluation.measures.builtin import reciprocal_rank as reciprocal_rank
    from bench.evaluation.measures.builtin import relevant as relevant
    from bench.evaluation.measures.checks import judged as judged
    from bench.evaluation.measures.evaluate import Qrels as Qrels
    from bench.evaluation.measures.evaluate import evaluate as evaluate
    from bench.evaluation.measures.evaluate import mean as mean
    from bench.evaluation.measures.evaluate import without_identical as without_identical
    from bench.evaluation.measures.specs import MeasureSpec as MeasureSpec
    from bench.evaluation.measures.specs import parse as parse
    from bench.evaluation.measures.trec_type import judge as judge
    from bench.types import Answers as Answers
    from bench.types import Candidates as Candidates
    from bench.types import DataRequest as DataRequest
    from bench.types import FineTuneStep as FineTuneStep
    from bench.types import OfficialScorer as OfficialScorer
    from bench.types import PairFormat as PairFormat
    from bench.types import Readout as Readout
    from bench.types import TrainingPair as TrainingPair

__all__, __getattr__, __dir__ = lazy(__name__, __file__)
