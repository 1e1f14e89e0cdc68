"""What the suites are given: sound ids and judgements, no leaks, and the difficulty that the world was set to."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from bench.data import mini
from bench.data.mini.writer import shared
from bench.types import Item, Judgement
from methods.bm25.analyzers import for_language
from tests.conftest import present

SMALL = replace(mini.DEFAULT, documents=60, articles=40, questions=20, pairs=40)


def _relevant(rows: Iterable[Judgement]) -> dict[str, set[str]]:
    """Query id → ids of relevant documents; no row stands twice."""
    relevant: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        assert row.document not in relevant[row.query]
        relevant[row.query].add(row.document)
    return relevant


def _orders(language: str, texts: Sequence[str], queries: Sequence[str]) -> list[list[int]]:
    """Return, for every query, the positions of the texts by rank_bm25 with the language's analyzer."""
    tokens = for_language(language).build()
    index = BM25Okapi([tokens(text) for text in texts])
    return [np.argsort(-index.get_scores(tokens(query)), kind="stable").tolist() for query in queries]


def _unique(items: Iterable[Item]) -> dict[str, Item]:
    listed = list(items)
    by_id = {item.id: item for item in listed}
    assert len(by_id) == len(listed) > 0
    assert all(item.id.split() == [item.id] and item.text for item in listed)
    return by_id


@cache
def _reciprocal_rank(language: str) -> float:
    """Mean reciprocal rank of BM25 on the test questions of a language."""
    passages = list(mini.passages(language).read())
    questions = list(mini.questions(language, "test").read())
    relevant = _relevant(mini.judgements(language, "test").read())
    texts = [f"{passage.title} {passage.text}" for passage in passages]
    ranks = [
        1 + next(place for place, at in enumerate(order) if passages[at].id in relevant[question.id])
        for question, order in zip(
            questions, _orders(language, texts, [question.text for question in questions]), strict=True
        )
    ]
    return float(np.mean([1 / rank for rank in ranks]))


@pytest.mark.parametrize("language", mini.LANGUAGES)
def test_pools_have_sound_ids_and_judgements(language: str) -> None:
    """About 400 passages, 60 test questions, splits apart; most questions have one passage and some have two."""
    passages = _unique(mini.passages(language).read())
    assert 350 <= len(passages) <= 450
    assert all(re.fullmatch(rf"{language}-\d+#\d", name) and item.title for name, item in passages.items())
    ids_so_far: set[str] = set()
    sizes: Counter[int] = Counter()
    for split, size in (("test", 60), ("dev", 30), ("train", 300)):
        questions = _unique(mini.questions(language, split).read())
        relevant = _relevant(mini.judgements(language, split).read())
        assert questions.keys() == relevant.keys()
        assert len(questions) == size
        assert ids_so_far.isdisjoint(questions)
        assert set().union(*relevant.values()) <= passages.keys()
        ids_so_far |= questions.keys()
        sizes.update(map(len, relevant.values()))
    assert sizes.keys() == {1, 2}
    assert 0.1 < sizes[2] / sizes.total() < 0.3


def test_two_relevant_passages_share_the_sentence_asked_for() -> None:
    """Where a question has two passages, the last sentence of the first is the first sentence of the second."""
    passages = _unique(mini.passages("es").read())
    pairs = [
        sorted(passages) for passages in _relevant(mini.judgements("es", "train").read()).values() if len(passages) == 2
    ]
    assert pairs
    for first, second in pairs:
        assert passages[first].text.split(". ")[-1].rstrip(".") == passages[second].text.split(". ")[0].rstrip(".")


@pytest.mark.parametrize("language", mini.LANGUAGES)
def test_no_test_text_is_among_the_pretraining_documents(language: str) -> None:
    """Neither questions nor sentences of passages, bitext or dialogues; nor does a passage hold its question."""
    sentences = {sentence for document in mini.documents(language) for sentence in document.sentences}
    everything = "\n".join(sorted(sentences)).lower()
    passages = [passage.text.lower() for passage in mini.passages(language).read()]
    for question in mini.questions(language, "test").read():
        bare = question.text.lower().strip("¿ ?？؟")
        assert bare not in everything
        assert not any(bare in passage for passage in passages)
    if language != "en":
        foreign, _ = mini.bitext(language)
        assert len(sentences.intersection(foreign)) <= 1  # two short sentences of 15,000 may agree by chance


def test_matching_words_is_strong_within_a_language_but_not_enough() -> None:
    """The band that the world was set to: BM25 finds most, and leaves much to be found by meaning."""
    values = {language: _reciprocal_rank(language) for language in mini.LANGUAGES}
    assert {language: value for language, value in values.items() if not 0.5 <= value <= 0.9} == {}
    assert 0.6 <= float(np.mean(list(values.values()))) <= 0.8


@pytest.mark.parametrize("language", ["ar", "fi", "ja", "th"])
def test_matching_words_is_worth_nothing_across_languages(language: str) -> None:
    """Without names and numerals, BM25 finds no translation; with them, only sentences that hold one can be found."""
    foreign, english = mini.bitext(language)
    assert len(set(foreign)) == len(set(english)) == len(foreign) == len(english) == 150
    tokens = for_language("en").build()
    names = {stem for token in shared(mini.DEFAULT) for stem in tokens(token)}
    common = {word for text in foreign for word in tokens(text)} & {word for text in english for word in tokens(text)}
    assert common <= names
    is_first = [place == order[0] for place, order in enumerate(_orders("en", english, foreign))]
    has_name = [not names.isdisjoint(tokens(text)) for text in foreign]
    assert 0.02 < np.mean(is_first) < 0.3
    assert sum(is_first) <= sum(has_name) + 1  # the first line is found by whoever finds nothing


@pytest.mark.parametrize("kind", [mini.cross_lingual, mini.mkqa])
def test_answers_stand_in_few_english_passages(kind: type) -> None:
    """Every answer can be found, in one to four passages, and the question does not give it away."""
    for language in ("sw", "ja", "ru"):
        parts = mini.cross_lingual(language) if kind is mini.cross_lingual else mini.mkqa(language)
        texts = [item.text for item in _unique(parts.corpus.read()).values()]
        questions = list(parts.questions.read())
        assert len({question.id for question in questions}) == len(questions) == 60
        for question in questions:
            assert question.language == language
            (answer,) = question.answers
            assert 1 <= sum(answer in text for text in texts) <= 4
            assert set(answer.lower().split()).isdisjoint(question.text.lower().split())


def test_questions_across_languages() -> None:
    """BM25 finds no foreign word in the English pool; MKQA's answers agree between languages, XOR's do not."""
    parts = mini.cross_lingual("id")
    tokens = for_language("en").build()
    pool = {word for item in parts.corpus.read() for word in tokens(item.text)}
    shared = [word for question in parts.questions.read() for word in tokens(question.text) if word in pool]
    assert shared == []

    def answers(parts: mini.Answering) -> list[tuple[str, ...]]:
        return [question.answers for question in parts.questions.read()]

    assert answers(mini.mkqa("te")) == answers(mini.mkqa("de"))
    assert answers(mini.cross_lingual("te")) != answers(mini.cross_lingual("de"))


@pytest.mark.parametrize("split", ["dev", "test"])
def test_duplicates_have_twenty_candidates_in_order(split: str) -> None:
    """All positives are among them, never the query; scores fall; a few queries have no positive."""
    parts = mini.duplicates(split)
    questions, queries = _unique(parts.corpus.read()), _unique(parts.queries.read())
    relevant = _relevant(parts.qrels.read())
    candidates = list(present(parts.candidates).read())
    assert [row.query for row in candidates] == list(queries)
    assert len(queries) == 60
    assert len(relevant) == 56
    precisions = []
    for row in candidates:
        assert len(row.documents) == len(set(row.documents)) == len(row.scores) == 20
        assert list(row.scores) == sorted(row.scores, reverse=True)
        assert row.query not in row.documents
        assert set(row.documents) <= questions.keys()
        if row.query not in relevant:
            continue
        assert relevant[row.query] <= set(row.documents)
        hits = np.array([name in relevant[row.query] for name in row.documents])
        precisions.append((hits.cumsum() / np.arange(1, 21))[hits].mean())
    assert 0.4 < float(np.mean(precisions)) < 0.8


def test_candidates_are_scored_by_bm25() -> None:
    """The best candidates of a query agree with bm25s, whose formula is the same."""
    import bm25s

    parts = mini.duplicates("test", SMALL)
    questions = list(parts.corpus.read())
    words = [re.findall(r"\w+", question.text.lower()) for question in questions]
    index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    index.index(words, show_progress=False)
    place = {question.id: at for at, question in enumerate(questions)}
    for row in present(parts.candidates).read():
        expected = index.get_scores(words[place[row.query]])
        assert row.scores == pytest.approx([expected[place[name]] for name in row.documents], abs=1e-4)


def test_beir_domains_are_three_kinds() -> None:
    """Claims and questions, short and long passages, graded and plain judgements, over different topics."""
    grades = {}
    lengths = {}
    for domain in mini.BEIR_DOMAINS:
        parts = mini.beir(domain)
        corpus, queries = _unique(parts.corpus.read()), _unique(parts.queries.read())
        rows = list(parts.qrels.read())
        assert _relevant(rows).keys() == queries.keys()
        assert len(queries) == 60
        assert {row.document for row in rows} <= corpus.keys()
        grades[domain] = {row.grade for row in rows}
        lengths[domain] = np.mean([len(item.text.split()) for item in corpus.values()])
        assert all(item.text.endswith("?") != (domain == "claims") for item in queries.values())
    assert grades == {"claims": {1}, "snippets": {1}, "articles": {1, 2}}
    assert lengths["snippets"] < lengths["claims"] < lengths["articles"]


def test_mentions_point_to_entities_of_the_pool() -> None:
    """The span holds the mention inside the middle sentence; about half of the mentions spell the name."""
    pool = _unique(mini.entities().read())
    assert len({item.language for item in pool.values()}) == len(mini.LANGUAGES)
    assert max(Counter(item.title for item in pool.values()).values()) == 2
    name_count = total = 0
    for language in mini.LANGUAGES:
        mentions = list(mini.mentions(language, "test").read())
        assert len({mention.id for mention in mentions}) == len(mentions) == 60
        for mention in mentions:
            surface = mention.text[mention.start : mention.end]
            assert surface.strip() == surface != ""
            first, last = mention.sentences[1]
            assert first <= mention.start < mention.end <= last
            assert len(mention.sentences) == 3
            title = pool[mention.entity].title
            name_count += surface == title
            total += 1
            assert surface == title or title not in mention.text
    assert abs(name_count / total - 0.5) < 4 * (0.25 / total) ** 0.5


def test_sentence_answers_have_one_target_in_every_language() -> None:
    """One pool for all languages; a candidate's sentence stands in its paragraph; targets say the same."""
    pools = []
    for language in ("th", "en"):
        parts = mini.sentence_answers(language)
        candidates = _unique(parts.corpus.read())
        questions, relevant = _unique(parts.queries.read()), _relevant(parts.qrels.read())
        assert questions.keys() == relevant.keys()
        for targets in relevant.values():
            assert sorted(candidates[name].language for name in targets) == sorted(mini.SENTENCE_LANGUAGES)
            assert len({name.partition("_")[2] for name in targets}) == 1
        assert all(item.title in item.text for item in candidates.values())
        pools.append(candidates)
    assert pools[0] == pools[1]


def test_training_pairs_come_from_the_training_split_and_from_articles_of_their_own() -> None:
    """Language pairs are judged relevant; no English pair holds a passage of the English pool."""
    relevant = _relevant(mini.judgements("ko", "train").read())
    pairs = list(mini.language_pairs("ko").read())
    assert [pair.query for pair in pairs] == list(mini.questions("ko", "train").read())
    assert {pair.query.id: {item.id for item in pair.positives} for pair in pairs} == relevant
    pool = _unique(mini.passages("ko").read())
    assert all(pool[item.id] == item for pair in pairs for item in pair.positives)
    assert {pair.source for pair in pairs} == {"mini/mrtydi/ko train"}
    english = list(mini.english_pairs().read())
    assert len({pair.query.id for pair in english}) == len(english) == mini.english_pairs().records == 640
    assert {pair.source for pair in english} == {"mini/pairs en"}
    pool = _unique(mini.passages("en").read())
    passages = {item.id: item for pair in english for item in pair.positives}
    assert pool.keys().isdisjoint(passages)
    assert {item.text for item in pool.values()}.isdisjoint(item.text for item in passages.values())
    question_ids = {item.id for split in ("train", "dev", "test") for item in mini.questions("en", split).read()}
    assert question_ids.isdisjoint(pair.query.id for pair in english)
