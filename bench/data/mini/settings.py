"""What decides a world: sizes and rates, and the named settings under which methods are compared."""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files

from bench.core.errors import UsageError
from bench.core.files import digest
from bench.core.messages import unknown

VERSION = "1"
"""Changes whenever the same settings would yield other texts."""


@dataclass(frozen=True)
class WorldSettings:
    """All that decides the texts of a world, with `VERSION`."""

    name: str = "default"  # of corpora made with these settings; it changes no text
    seed: int = 17  # of everything
    topics: int = 30
    concepts: int = 10  # per topic; they form a ring, along which scenes move
    names: int = 2  # per topic, spelled alike in all languages
    numerals: int = 1  # per topic, spelled alike in all languages
    name_rate: float = 0.8  # share of sentences that hold a name or numeral
    synonyms: int = 2  # words per concept and language
    zipf: float = 1.0  # exponent of the frequencies of synonyms and function words; 0 makes all equally frequent
    function_words: int = 24  # per language
    inflection: float = 0.15  # share of content words that bear an affix
    ordered: bool = True  # scenes follow one another along the ring; otherwise the sentences of every text are shuffled
    documents: int = 1500  # of pretraining, per language
    articles: int = 160  # per language, from which the passages of a retrieval pool are cut
    questions: int = 60  # of the test, per language
    pairs: int = 150  # of sentences, per language

    def __post_init__(self) -> None:
        """Raise `UsageError` for a size below its least, or a rate outside 0 to 1."""
        least = {"topics": 2, "concepts": 6, "names": 1, "synonyms": 1, "function_words": 1, "documents": 1}
        least |= {"articles": 1, "questions": 1, "pairs": 1, "numerals": 0, "seed": 0}
        wrong = {field: f"at least {smallest}" for field, smallest in least.items() if getattr(self, field) < smallest}
        rates = [field for field in ("name_rate", "inflection") if not 0 <= getattr(self, field) <= 1]
        for field, expected in (wrong | dict.fromkeys(rates, "a share from 0 to 1")).items():
            raise UsageError(where="world settings", found=f"{field} {getattr(self, field)}", expected=expected)

    def digest(self) -> str:
        """Sixteen hexadecimal digits of everything but the name."""
        values = asdict(self)
        del values["name"]
        return digest(values)[:16]

    @property
    def corpus(self) -> str:
        """The name of the pretraining corpus: `mini`, or `mini-few-names` and the like."""
        return "mini" if self.name == DEFAULT.name else f"mini-{self.name}"


DIALOGUES = "-dialogues"
"""What the name of a corpus of dialogues ends in."""

DEFAULT = WorldSettings()
"""The settings of everything that is called mini without more words."""

PRESETS: Mapping[str, WorldSettings] = {
    name: WorldSettings(name, **changes)
    for name, changes in json.loads(files("bench.data.mini").joinpath("worlds.json").read_bytes()).items()
}
"""The variants of the world under which a ranking of methods is reported, so that anyone can see what each favours."""


def check(what: str, name: str, names: Collection[str]) -> None:
    """Raise `UsageError` for a name that is none of those that there are."""
    if name not in names:
        raise UsageError(unknown(what, name, tuple(names)))


def variant(name: str) -> WorldSettings:
    """Return the settings called `name`. Raises `UsageError` if there are none."""
    check("settings of the mini world", name, PRESETS)
    return PRESETS[name]


def variant_of_corpus(corpus: str) -> WorldSettings:
    """Return the settings of a pretraining corpus by its name. Raises `UsageError` if there is no such corpus."""
    variants = {settings.corpus + kind: settings for kind in ("", DIALOGUES) for settings in PRESETS.values()}
    check("corpus of the mini world", corpus, variants)
    return variants[corpus]
