"""The world as a whole: the same everywhere, in its own scripts, sharing only names and numerals."""

import pickle
import re
import subprocess
import sys
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import pytest

from bench.core.errors import UsageError
from bench.core.files import digest
from bench.data import mini
from bench.data.mini.draws import Draws, cumulative_weights
from bench.data.mini.languages import LANGUAGES
from bench.data.mini.latent import story
from bench.data.mini.settings import WorldSettings
from bench.data.mini.writer import inflected, lexicon, shared, writer
from tests.conftest import cases

SMALL = replace(mini.DEFAULT, documents=60, articles=40, questions=20, pairs=40)

DIGEST = """
import json, sys
from dataclasses import asdict, replace
from bench.data import mini
from bench.core.files import digest
small = replace(mini.DEFAULT, documents=20, articles=12, questions=8, pairs=10)
order = mini.LANGUAGES if sys.argv[1] == "forward" else mini.LANGUAGES[::-1]
everything = {}
for language in order:
    records = [
        *mini.documents(language, small), *mini.dialogues(language, small),
        *mini.passages(language, small).read(), *mini.questions(language, "test", small).read(),
        *mini.judgements(language, "train", small).read(), *mini.language_pairs(language, small).read(),
        *mini.cross_lingual(language, small).questions.read(), *mini.mkqa(language, small).questions.read(),
        *mini.mentions(language, "dev", small).read(),
    ]
    # A document without the corpus that it is from, which it has in a mixture alone.
    plain = [{name: value for name, value in asdict(one).items() if (name, value) != ("source", "")} for one in records]
    everything[language] = [plain, mini.bitext(language, small) if language != "en" else []]
for domain in mini.BEIR_DOMAINS:
    parts = mini.beir(domain, small)
    everything[domain] = [asdict(one) for part in (parts.corpus, parts.queries, parts.qrels) for one in part.read()]
parts = mini.duplicates("test", small)
everything["duplicates"] = [asdict(one) for part in (parts.candidates, parts.corpus) for one in part.read()]
parts = mini.sentence_answers("th", small)
everything["sentences"] = [asdict(one) for part in (parts.corpus, parts.queries) for one in part.read()]
everything["entities"] = [asdict(one) for one in mini.entities(small).read()]
print(digest(everything))
"""


PINNED = "5e3a4ddf2cbd6d66736609d308f0b8504a704ed347974fae6af5db3d9b18aa44"
"""What `DIGEST` prints, whatever the machine."""


def _digest(order: str, hash_seed: str) -> str:
    env = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", DIGEST, order]
    process = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return process.stdout.strip()


def test_every_text_is_the_same_in_another_process_order_and_hash_seed() -> None:
    """The pinned digest guards `VERSION`: whoever changes a text must change both."""
    assert _digest("forward", "1") == _digest("backward", "2") == PINNED


def test_draws_are_numpy_s_and_fair() -> None:
    """The upper 53 bits are numpy's own; Zipf weights and shuffles are fair within four standard errors."""
    import numpy as np

    expected = np.random.Generator(np.random.PCG64(np.random.SeedSequence([3, 1, 8]))).random(600).tolist()
    draws = Draws(3, 8)
    assert [draws.unit() for _ in range(600)] == expected
    assert len({Draws(*key).unit() for key in ((0,), (0, 0), (0, 0, 0), (0, "a"), (0, "a", 0))}) == 5
    draws = Draws(1, "fair")
    counts = Counter(draws.weighted(cumulative_weights(3, 1.0)) for _ in range(11_000))
    for rank, share in enumerate((6 / 11, 3 / 11, 2 / 11)):
        assert abs(counts[rank] - 11_000 * share) < 4 * (11_000 * share * (1 - share)) ** 0.5
    orders = Counter("".join(draws.shuffled("abc")) for _ in range(6000))
    assert len(orders) == 6
    assert all(abs(count - 1000) < 4 * (1000 * 5 / 6) ** 0.5 for count in orders.values())


@pytest.mark.parametrize("language", mini.LANGUAGES)
def test_words_are_written_in_the_language_s_script(language: str) -> None:
    """Every letter and mark of every form belongs to the script, and normalisation leaves words as they are."""
    scripts = LANGUAGES[language].scripts
    forms = lexicon(SMALL, language).forms()
    letters = {letter for form in forms for letter in form}
    assert {unicodedata.category(letter)[0] for letter in letters} <= {"L", "M"}
    assert {letter for letter in letters if not unicodedata.name(letter).startswith(scripts)} == set()
    assert [form for form in forms if unicodedata.normalize("NFKC", form).lower() != form] == []


def test_texts_hold_nothing_but_words_shared_tokens_and_marks() -> None:
    """Every sentence is a sequence of words of its lexicon, names, numerals, blanks and the language's own marks."""
    for code, language in LANGUAGES.items():
        words = [*lexicon(SMALL, code).forms(), *shared(SMALL), *language.stop, *"".join(language.question), " "]
        longest_first = sorted(map(re.escape, words), key=len, reverse=True)
        sequence = re.compile(f"(?:{'|'.join(longest_first)})+", re.IGNORECASE)
        for document in list(mini.documents(code, SMALL))[:10]:
            assert [sentence for sentence in document.sentences if not sequence.fullmatch(sentence)] == []


def test_languages_share_only_names_and_numerals() -> None:
    """No form occurs in two languages or of two words; what two corpora have in common is shared by all."""
    forms = {code: lexicon(mini.DEFAULT, code).forms() for code in mini.LANGUAGES}
    for first, second in combinations(mini.LANGUAGES, 2):
        assert forms[first].isdisjoint(forms[second])
    words = {
        code: {word for document in mini.documents(code, SMALL) for word in re.findall(r"\w+", str(document.sentences))}
        for code in mini.LANGUAGES
    }
    tokens = set(shared(SMALL))
    for first, second in combinations(mini.LANGUAGES, 2):
        common = words[first] & words[second]
        assert common <= tokens
        assert len(common) > len(tokens) / 4
    for code, language in LANGUAGES.items():
        vocabulary = [word for group in lexicon(SMALL, code).content for word in group]
        assert len({form for word in vocabulary for form in inflected(word, language)}) == sum(
            len(inflected(word, language)) for word in vocabulary
        )


def test_names_belong_to_topics() -> None:
    """In every language, the documents of a name speak of its topic's concepts far more than of any other's."""
    settings = replace(mini.DEFAULT, documents=400)
    per_topic = settings.names + settings.numerals
    topic_of = {token: number // per_topic for number, token in enumerate(shared(settings))}
    for code in ("en", "ar", "ko"):
        concept_of = {
            word: number // settings.concepts
            for number, group in enumerate(lexicon(settings, code).content)
            for bare in group
            for word in inflected(bare, LANGUAGES[code])
        }
        met: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for document in mini.documents(code, settings):
            words = re.findall(r"\w+", " ".join(document.sentences).lower())
            topics = [concept_of[word] for word in words if word in concept_of]
            for token in {word for word in re.findall(r"\w+", " ".join(document.sentences)) if word in topic_of}:
                met[topic_of[token]].update(topics)
        assert len(met) == settings.topics
        assert [topic for topic, counts in met.items() if counts.most_common(1)[0][0] != topic] == []


def test_scenes_follow_one_another_unless_shuffled() -> None:
    """Neighbouring sentences share more concepts than distant ones; without order they do not."""

    def overlap(settings: WorldSettings, distance: int) -> float:
        shares = []
        for number in range(300):
            thoughts = story(settings, Draws(5, "order", number), 8).thoughts
            for thought, later in zip(thoughts, thoughts[distance:], strict=False):
                shares.append(len(set(thought.concepts) & set(later.concepts)) / len(thought.concepts))
        return sum(shares) / len(shares)

    assert overlap(mini.DEFAULT, 1) > 2 * overlap(mini.DEFAULT, 5)
    shuffled = mini.PRESETS["no-order"]
    assert overlap(shuffled, 1) == pytest.approx(overlap(shuffled, 5), abs=0.03)


@pytest.mark.parametrize(("name", "share"), [("few-names", 0.4), ("default", 0.8), ("many-names", 1.0)])
def test_names_are_as_frequent_as_the_settings_say(name: str, share: float) -> None:
    """The share of sentences with a name or numeral is the rate, within four standard errors."""
    settings = replace(mini.variant(name), documents=200)
    tokens = set(shared(settings))
    sentences = [sentence for document in mini.documents("fi", settings) for sentence in document.sentences]
    having = sum(not tokens.isdisjoint(re.findall(r"\w+", sentence)) for sentence in sentences)
    assert abs(having / len(sentences) - share) <= 4 * (share * (1 - share) / len(sentences)) ** 0.5


def test_synonyms_follow_their_law() -> None:
    """Two synonyms with exponent 1 are written two to one."""
    write, draws = writer(replace(mini.DEFAULT, inflection=0.0), "te"), Draws(1, "synonyms")
    counts = Counter(write.word(7, draws) for _ in range(3000))
    first, second = write.lexicon.content[7]
    assert counts.keys() == {first, second}
    assert abs(counts[first] - 2000) < 4 * (3000 * 2 / 9) ** 0.5


def test_settings_seeds_and_sizes_differ() -> None:
    """Named worlds have their own digest and texts, seeds their own words; its number alone decides a document."""
    assert tuple(mini.PRESETS) == ("default", "few-names", "many-names", "no-order", "noisy-synonyms")
    assert len({settings.digest() for settings in mini.PRESETS.values()}) == 5
    first = {digest(next(mini.documents("sw", settings)).sentences) for settings in mini.PRESETS.values()}
    assert len(first) == 5
    renamed = replace(mini.DEFAULT, name="other")
    assert renamed.digest() == mini.DEFAULT.digest()
    assert next(mini.documents("sw", renamed)) == next(mini.documents("sw"))
    assert [settings.corpus for settings in mini.PRESETS.values()][:2] == ["mini", "mini-few-names"]
    assert [mini.variant_of_corpus(settings.corpus) for settings in mini.PRESETS.values()] == list(
        mini.PRESETS.values()
    )
    reseeded = replace(SMALL, seed=SMALL.seed + 1)
    common = lexicon(SMALL, "ru").forms() & lexicon(reseeded, "ru").forms()
    assert len(common) < len(lexicon(SMALL, "ru").forms()) / 20
    assert next(mini.documents("ru", SMALL)).sentences != next(mini.documents("ru", reseeded)).sentences
    assert list(mini.documents("ja", SMALL)) == list(mini.documents("ja", mini.DEFAULT))[: SMALL.documents]


def test_documents_and_dialogues() -> None:
    """As many and as long as promised, the stream in pieces as a whole; sessions have both kinds of utterances."""
    everything = list(mini.corpus(SMALL).read())
    assert len(everything) == len({document.id for document in everything}) == 14 * SMALL.documents
    assert everything == [document for code in mini.LANGUAGES for document in mini.documents(code, SMALL)]
    for document in everything:
        assert 6 <= len(document.sentences) <= 12
        assert document.title
        assert not document.group
        assert all(sentence == sentence.strip() != "" for sentence in document.sentences)
    sessions = [session for code in ("es", "ar") for session in mini.dialogues(code, SMALL)]
    turns = [turn for session in sessions for turn in session.sentences]
    asking = sum(turn.endswith(("?", "؟")) for turn in turns)
    assert len(turns) / 5 < asking < len(turns) / 2
    sentences = {
        sentence for code in ("es", "ar") for document in mini.documents(code, SMALL) for sentence in document.sentences
    }
    assert sentences.isdisjoint(turns)
    assert len(list(mini.dialogue_corpus(SMALL, ("es", "ar")).read())) == len(sessions) == 40


def test_sources_can_be_pickled_and_say_what_decides_them() -> None:
    """A source read in another process gives the same; different streams and settings have different readers."""
    source = mini.passages("th", SMALL)
    copy = pickle.loads(pickle.dumps(source))  # noqa: S301 (pickled on the line itself)
    assert list(copy.read()) == list(source.read())
    assert source.files == ()
    assert source.name == "mini/mrtydi/th passages"
    assert source.reader.startswith(f"mini/1:{SMALL.digest()}:")
    readers = [
        mini.passages("th", SMALL).reader,
        mini.passages("te", SMALL).reader,
        mini.passages("th", mini.DEFAULT).reader,
        mini.questions("th", "dev", SMALL).reader,
        mini.questions("th", "test", SMALL).reader,
        mini.corpus(SMALL).reader,
        mini.corpus(SMALL, ("th",)).reader,
        mini.dialogue_corpus(SMALL, ("th",)).reader,
    ]
    assert len(set(readers)) == len(readers)


def test_generation_is_quick() -> None:
    """A language's documents, its pool and its questions each take a fraction of a second of the processor."""
    fresh = replace(mini.DEFAULT, seed=99)
    start = time.process_time()
    assert sum(1 for _ in mini.documents("ko", fresh)) == 1500
    assert time.process_time() - start < 2  # about 0.15 on an idle core
    start = time.process_time()
    assert len(list(mini.passages("ko", fresh).read())) > 350
    assert len(list(mini.questions("ko", "test", fresh).read())) == 60
    assert time.process_time() - start < 1  # about 0.05


@pytest.mark.parametrize(("change", "message"), cases("impossible-settings-are-refused"))
def test_impossible_settings_are_refused(change: dict[str, int], message: str) -> None:
    """The sentence names the field, what was found and what is possible."""
    with pytest.raises(UsageError, match=re.escape(message)):
        replace(mini.DEFAULT, **change)  # type: ignore[arg-type]  # the values fit the fields named


@pytest.mark.parametrize(
    ("take", "suggested"),
    [
        (lambda: mini.variant("few-name"), "few-names"),
        (lambda: mini.variant_of_corpus("mini-few-name"), "mini-few-names"),
        (lambda: mini.questions("en", "tests"), "test"),
        (lambda: mini.judgements("en", "tests"), "test"),
        (lambda: mini.beir("claim"), "claims"),
        (lambda: mini.duplicates("devel"), "dev"),
        (lambda: mini.sentence_answers("sw"), "th"),
        (lambda: mini.mentions("dd", "test"), "de"),
        (lambda: mini.mkqa("dd"), "de"),
    ],
)
def test_unknown_names_get_a_suggestion(take: Callable[[], object], suggested: str) -> None:
    """Settings, splits, domains and languages that do not exist."""
    with pytest.raises(UsageError, match=suggested):
        take()
