"""Training pairs as streams of one schema, `bench.types.TrainingPair`, whatever they were released as.

`of` finds pairs of the user's by name; `from_leg` makes them of a task's judgements, `split` of a BEIR folder's,
`of_dataset` of those of ir_datasets. One module reads one form: `dpr`, `squad`, `jsonl`, `tsv`. `without` and `unasked`
leave out what some test asks, `drawn` takes a random sample, `joined` puts several sources together, `describe` counts.
`with_dev` puts dev pairs of the same release with training pairs, `dev_of` finds them there.
"""

from bench.data.pairs.choose import of
from bench.data.pairs.judged import from_leg, of_dataset, split
from bench.data.pairs.leaks import unasked, without
from bench.data.pairs.sources import (
    PairOutcome,
    PairSource,
    Summary,
    describe,
    dev_of,
    drawn,
    joined,
    outcomes,
    with_dev,
)

__all__ = [
    "PairOutcome",
    "PairSource",
    "Summary",
    "describe",
    "dev_of",
    "drawn",
    "from_leg",
    "joined",
    "of",
    "of_dataset",
    "outcomes",
    "split",
    "unasked",
    "with_dev",
    "without",
]
