"""Results: the open format as models, its writer, its reader, and averages over tasks."""

from bench.evaluation.results.averages import Stratum as Stratum
from bench.evaluation.results.averages import averages as averages
from bench.evaluation.results.averages import headline as headline
from bench.evaluation.results.averages import shares as shares
from bench.evaluation.results.averages import task_value as task_value
from bench.evaluation.results.format import CARDS as CARDS
from bench.evaluation.results.format import CURVES as CURVES
from bench.evaluation.results.format import RESULT as RESULT
from bench.evaluation.results.format import SCHEMA as SCHEMA
from bench.evaluation.results.format import Content as Content
from bench.evaluation.results.read import Result as Result
from bench.evaluation.results.read import faults as faults
from bench.evaluation.results.read import keys as keys
from bench.evaluation.results.read import result_files as result_files
from bench.evaluation.results.read import results as results
from bench.evaluation.results.write import Entry as Entry
from bench.evaluation.results.write import Heading as Heading
from bench.evaluation.results.write import Published as Published
from bench.evaluation.results.write import publish as publish
