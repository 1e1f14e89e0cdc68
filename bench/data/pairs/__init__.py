"""Training pairs as streams of one schema, `bench.types.TrainingPair`, whatever they were released as."""

from bench.data.pairs.choose import of as of
from bench.data.pairs.judged import from_leg as from_leg
from bench.data.pairs.judged import of_dataset as of_dataset
from bench.data.pairs.judged import split as split
from bench.data.pairs.leaks import unasked as unasked
from bench.data.pairs.leaks import without as without
from bench.data.pairs.sources import PairOutcome as PairOutcome
from bench.data.pairs.sources import PairSource as PairSource
from bench.data.pairs.sources import dev_of as dev_of
from bench.data.pairs.sources import drawn as drawn
from bench.data.pairs.sources import joined as joined
from bench.data.pairs.sources import outcomes as outcomes
from bench.data.pairs.sources import with_dev as with_dev
