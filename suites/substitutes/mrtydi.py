"""Substitutes for Mr. TyDi: questions over thousands of passages of the same language, each language in a folder."""

from suites.common import Rules, brings
from suites.readouts import CCP
from suites.substitutes.common import Substitute, described, own_pool, table

RULES = Rules(("RR@100", "R@100"), official=("mrtydi-ccp",), readout=CCP)

# Task, documents, then judged queries / judgements of test, dev and train; counted in the files.
_GOLDP = """
ar  1981 894/894 -         -
bn  1198   94/94 -         -
en 11787 437/437 727/727   2949/2949
fi  1400 780/780 -         -
id  4653 565/565 1132/1132 4480/4482
ko  1488 236/239 237/241   1063/1086
ru  1400 726/726 -         -
sw  1981 456/456 490/572   1919/2210
te  1400 605/605 -         -
"""
_NATIVE = """
ja 11144 3939/3939 -       31746/31746
th  2142   739/739 736/736   5679/5679
"""

GOLDP = Substitute(**described("mrtydi-goldp"), parts=table(_GOLDP, folders=True), rules=RULES, leg=own_pool)

NATIVE = Substitute(**described("wikiqa-native"), parts=table(_NATIVE, folders=True), rules=RULES, leg=own_pool)
bench_suites = brings(GOLDP.suite(), NATIVE.suite())
