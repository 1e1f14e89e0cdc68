"""Training pairs as streams of one schema, `bench.types.TrainingPair`, whatever they were released as."""

from bench.data.pairs.choose import load_pairs as load_pairs
from bench.data.pairs.judged import from_subset as from_subset
from bench.data.pairs.judged import irds_pairs as irds_pairs
from bench.data.pairs.judged import pairs_of_split as pairs_of_split
from bench.data.pairs.leaks import without_leaks as without_leaks
from bench.data.pairs.leaks import without_test_questions as without_test_questions
from bench.data.pairs.sources import PairOutcome as PairOutcome
from bench.data.pairs.sources import PairSource as PairSource
from bench.data.pairs.sources import concatenate as concatenate
from bench.data.pairs.sources import dev_of as dev_of
from bench.data.pairs.sources import outcomes as outcomes
from bench.data.pairs.sources import sample_pairs as sample_pairs
from bench.data.pairs.sources import with_dev as with_dev
