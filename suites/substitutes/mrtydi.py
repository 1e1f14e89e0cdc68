"""Substitutes for Mr. TyDi: questions over thousands of passages of the same language, each language in a folder."""

from suites.common import ScoringProtocol, brings
from suites.readouts import CCP
from suites.substitutes.common import Substitute, described, own_pool

PROTOCOL = ScoringProtocol(("RR@100", "R@100"), official=("mrtydi-ccp",), readout=CCP)

GOLDP = Substitute(**described("mrtydi-goldp"), protocol=PROTOCOL, subset=own_pool)
NATIVE = Substitute(**described("wikiqa-native"), protocol=PROTOCOL, subset=own_pool)
bench_suites = brings(GOLDP.suite(), NATIVE.suite())
