"""A substitute for Mewsli-X: a paragraph in one language, and the English article (of one pool) about its matter."""

from suites.common import Rules, brings
from suites.substitutes.common import Substitute, described, english_pool, table

# Task, documents, then judged queries / judgements of test, dev and train; counted in the files.
_ARTICLES = """
ar 4485 218/218 - -
de 4485 213/213 - -
es 4485 218/218 - -
hi 4485 234/234 - -
vi 4485 240/240 - -
zh 4485 231/231 - -
"""

ARTICLES = Substitute(
    **described("mlqa-article-linking"),
    parts=table(_ARTICLES, folders=True),
    rules=Rules(("AP@20", "accuracy"), "list", depth=20, similarity="cos"),
    leg=english_pool,
)
bench_suites = brings(ARTICLES.suite())
