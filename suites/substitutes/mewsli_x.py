"""A substitute for Mewsli-X: a paragraph in one language, and the English article (of one pool) about its matter."""

from suites.common import ScoringProtocol, brings
from suites.substitutes.common import Substitute, described, english_pool

ARTICLES = Substitute(
    **described("mlqa-article-linking"),
    protocol=ScoringProtocol(("AP@20", "accuracy"), "list", depth=20, similarity="cos"),
    subset=english_pool,
)
bench_suites = brings(ARTICLES.suite())
