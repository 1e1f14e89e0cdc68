"""A substitute for Mewsli-X: a paragraph in one language, and the English article about the same thing.

Protocol and counts: the card (`suites/cards/mlqa-article-linking.md`). The files lie in BEIR's layout in a folder a
language, e.g. `mlqa-article-linking/hi/queries.jsonl`; the English articles are the same in all of them.
"""

from suites.common import Rules, brings
from suites.substitutes.common import Substitute, english_pool, table

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
    name="mlqa-article-linking",
    stands_for="mewsli-x",
    title="MLQA article linking",
    summary="Paragraphs in 6 languages, each to be linked to one of 4,485 English articles.",
    citation=(
        "Patrick Lewis, Barlas Oğuz, Ruty Rinott, Sebastian Riedel, Holger Schwenk. MLQA: Evaluating Cross-lingual "
        "Extractive Question Answering. ACL, 2020."
    ),
    licence="CC BY-SA",
    parts=table(_ARTICLES, folders=True),
    rules=Rules(("AP@20", "accuracy"), "list", depth=20, similarity="cos"),
    leg=english_pool,
    average=("Avg. (6)", "unweighted mean over the 6 languages of the paragraphs"),
)
bench_suites = brings(ARTICLES.suite())
