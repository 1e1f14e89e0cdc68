"""A substitute for MKQA: find the same question in English, among questions that are the same in every folder."""

from dataclasses import replace

from suites.common import Rules, brings
from suites.readouts import CONTRIEVER
from suites.substitutes.common import Substitute, described, english_pool, table

# Task, documents, then judged queries / judgements of test, dev and train; counted in the files.
_QUESTIONS = """
ar    6758 6758/6780 - -
es    6758 6758/6770 - -
fi    6758 6758/6790 - -
ja    6758 6758/6764 - -
km    6758 6758/6806 - -
ko    6758 6758/6892 - -
ms    6758 6758/6780 - -
ru    6758 6758/6786 - -
sv    6758 6758/6822 - -
tr    6758 6758/6786 - -
zh_cn 6758 6758/6830 - -
"""

QUESTIONS = Substitute(
    **described("mkqa-questions"),
    parts=table(_QUESTIONS, folders=True),
    rules=Rules(("RR@10", "accuracy", "R@100"), "list", similarity="dot", readout=replace(CONTRIEVER, lowercase=True)),
    leg=english_pool,
)
bench_suites = brings(QUESTIONS.suite())
