"""A substitute for MKQA: find the same question in English, among questions that are the same in every folder."""

from dataclasses import replace

from suites.common import ScoringProtocol, brings
from suites.readouts import CONTRIEVER
from suites.substitutes.common import Substitute, described, english_pool

QUESTIONS = Substitute(
    **described("mkqa-questions"),
    protocol=ScoringProtocol(
        ("RR@10", "accuracy", "R@100"), "list", similarity="dot", readout=replace(CONTRIEVER, lowercase=True)
    ),
    subset=english_pool,
)
bench_suites = brings(QUESTIONS.suite())
