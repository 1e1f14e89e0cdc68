"""Training pairs as streams of one schema, `bench.types.TrainingPair`, whatever they were released as.

`of` finds pairs of the user's by name; `from_leg` makes them of a task's judgements, `split` of a BEIR folder's,
`of_dataset` of those of ir_datasets. One module reads one form: `dpr`, `squad`, `jsonl`, `tsv`. `without` and `unasked`
leave out what some test asks, `drawn` takes a random sample, `joined` puts several sources together, `describe` counts.
`with_dev` puts dev pairs of the same release with training pairs, `dev_of` finds them there.
"""

from bench.data.pairs.choose import of as of
from bench.data.pairs.judged import from_leg as from_leg
from bench.data.pairs.judged import of_dataset as of_dataset
from bench.data.pairs.judged import split as split
from bench.data.pairs.leaks import unasked as unasked
from bench.data.pairs.leaks import without as without
from bench.data.pairs.sources import PairOutcome as PairOutcome
from bench.data.pairs.sources import PairSource as PairSource
from bench.data.pairs.sources import Summary as Summary
from bench.data.pairs.sources import describe as describe
from bench.data.pairs.sources import dev_of as dev_of
from bench.data.pairs.sources import drawn as drawn
from bench.data.pairs.sources import joined as joined
from bench.data.pairs.sources import outcomes as outcomes
from bench.data.pairs.sources import with_dev as with_dev
