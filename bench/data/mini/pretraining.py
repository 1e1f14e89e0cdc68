"""What methods are pretrained on: documents and dialogues. No text of it is said twice, in no other language either."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from bench.core.encoder_config import Document
from bench.data.mini.draws import Draws
from bench.data.mini.languages import LANGUAGES
from bench.data.mini.latent import story
from bench.data.mini.records import source
from bench.data.mini.settings import DEFAULT, DIALOGUES, WorldSettings, variant_of_corpus
from bench.data.mini.writer import writer
from bench.types import Source

_LENGTH = (6, 12)
_TURNS = (4, 10)


def documents(language: str, settings: WorldSettings = DEFAULT) -> Iterator[Document]:
    """Yield the pretraining documents of a language, `settings.documents` of them, with ids like `en-12`."""
    write = writer(settings, language)
    for number in range(settings.documents):
        draws = Draws(settings.seed, "document", language, number)
        meaning = story(settings, draws, draws.between(*_LENGTH))
        sentences = tuple(write.sentence(thought, draws) for thought in meaning.thoughts)
        yield Document(f"{language}-{number}", language, sentences, write.title(meaning, draws))


def dialogues(language: str, settings: WorldSettings = DEFAULT) -> Iterator[Document]:
    """Yield sessions of two speakers in turn, a third as many as documents, with ids like `dialogue-en-12`."""
    write = writer(settings, language)
    for number in range(max(1, settings.documents // 3)):
        draws = Draws(settings.seed, "dialogue", language, number)
        meaning = story(settings, draws, draws.between(*_TURNS))
        turns = (
            write.question(thought, draws) if draws.chance(1 / 3) else write.sentence(thought, draws)
            for thought in meaning.thoughts
        )
        yield Document(f"dialogue-{language}-{number}", language, tuple(turns))


def corpus(settings: WorldSettings = DEFAULT, languages: tuple[str, ...] = tuple(LANGUAGES)) -> Source[Document]:
    """Return the pretraining documents of several languages, one language after the other."""
    documents_source = source(settings, f"pretraining {'+'.join(languages)}", _of_all, documents, languages)
    return replace(documents_source, records=settings.documents * len(languages))


def dialogue_corpus(
    settings: WorldSettings = DEFAULT, languages: tuple[str, ...] = tuple(LANGUAGES)
) -> Source[Document]:
    """Return the dialogues of several languages, one language after the other."""
    dialogues_source = source(settings, f"dialogues {'+'.join(languages)}", _of_all, dialogues, languages)
    return replace(dialogues_source, records=max(1, settings.documents // 3) * len(languages))


def named_corpus(name: str) -> Source[Document]:
    """Return a corpus by its name, `mini` or `mini-no-order-dialogues`, say. Raises `UsageError` if there is none."""
    return (dialogue_corpus if name.endswith(DIALOGUES) else corpus)(variant_of_corpus(name))


def _of_all(
    settings: WorldSettings, write: Callable[[str, WorldSettings], Iterator[Document]], languages: tuple[str, ...]
) -> Iterator[Document]:
    for language in languages:
        yield from write(language, settings)
