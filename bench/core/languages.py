"""English names of languages: what people type where tasks and settings have codes."""

import re
from collections.abc import Iterable

_CODES = {
    "afrikaans": "af afr",
    "amharic": "am amh",
    "arabic": "ar ara",
    "armenian": "hy hye",
    "azerbaijani": "az aze",
    "basque": "eu eus",
    "bemba": "bem",
    "bengali": "bn ben",
    "bulgarian": "bg bul",
    "catalan": "ca cat",
    "chinese": "zh zho cmn",
    "czech": "cs ces",
    "danish": "da dan",
    "dutch": "nl nld",
    "english": "en eng",
    "estonian": "et est",
    "farsi": "fa fas pes",
    "finnish": "fi fin",
    "french": "fr fra",
    "georgian": "ka kat",
    "german": "de deu",
    "greek": "el ell",
    "hausa": "ha hau",
    "hebrew": "he heb",
    "hindi": "hi hin",
    "hungarian": "hu hun",
    "igbo": "ig ibo",
    "indonesian": "id ind",
    "italian": "it ita",
    "japanese": "ja jpn",
    "khmer": "km khm",
    "kinyarwanda": "rw kin",
    "korean": "ko kor",
    "malay": "ms msa zsm",
    "mandarin": "zh zho cmn",
    "norwegian": "no nor nob",
    "persian": "fa fas pes",
    "polish": "pl pol",
    "portuguese": "pt por",
    "romanian": "ro ron",
    "russian": "ru rus",
    "spanish": "es spa",
    "swahili": "sw swa swh",
    "swedish": "sv swe",
    "tamil": "ta tam",
    "telugu": "te tel",
    "thai": "th tha",
    "turkish": "tr tur",
    "twi": "tw twi",
    "ukrainian": "uk ukr",
    "urdu": "ur urd",
    "vietnamese": "vi vie",
    "yoruba": "yo yor",
    "zulu": "zu zul",
}
"""Name → codes of ISO 639-1 and 639-3, the languages of the suites that are known by name."""


def of_language(word: str, names: Iterable[str]) -> list[str]:
    """Return the names that are, or begin with, a code of the language that a word names; a suite may precede each.

    >>> of_language("Swahili", ["ar", "sw", "swe-eng", "swh-eng", "mrtydi/sw"])
    ['sw', 'swh-eng', 'mrtydi/sw']
    """
    codes = _CODES.get(word.rpartition("/")[2].strip().lower(), "").split()
    return [name for name in names if re.split("[-_]", name.rpartition("/")[2])[0] in codes]
