"""The languages of tasks: their codes, and how they group by script, resources, family, and what was pretrained on.

Averages over groups describe where a system is strong; they are not tested.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bench.evaluation.measures.aggregate import mean
from leaderboard.site.systems import System, stage_facts

# fmt: off
_LANGUAGES = {
    "af": "afr-Latn", "ar": "ara-Arab", "az": "aze-Latn", "bg": "bul-Cyrl", "bn": "ben-Beng", "cs": "ces-Latn",
    "da": "dan-Latn", "de": "deu-Latn", "el": "ell-Grek", "en": "eng-Latn", "es": "spa-Latn", "et": "est-Latn",
    "eu": "eus-Latn", "fa": "fas-Arab", "fi": "fin-Latn", "fr": "fra-Latn", "ha": "hau-Latn", "he": "heb-Hebr",
    "hi": "hin-Deva", "hu": "hun-Latn", "id": "ind-Latn", "ig": "ibo-Latn", "it": "ita-Latn", "ja": "jpn-Jpan",
    "jv": "jav-Latn", "ka": "kat-Geor", "kk": "kaz-Cyrl", "km": "khm-Khmr", "ko": "kor-Hang", "ml": "mal-Mlym",
    "mr": "mar-Deva", "ms": "msa-Latn", "my": "mya-Mymr", "nl": "nld-Latn", "no": "nor-Latn", "pl": "pol-Latn",
    "pt": "por-Latn", "ro": "ron-Latn", "ru": "rus-Cyrl", "rw": "kin-Latn", "sr": "srp-Cyrl", "sv": "swe-Latn",
    "sw": "swa-Latn", "ta": "tam-Taml", "te": "tel-Telu", "th": "tha-Thai", "tl": "tgl-Latn", "tr": "tur-Latn",
    "tw": "twi-Latn", "uk": "ukr-Cyrl", "ur": "urd-Arab", "vi": "vie-Latn", "wo": "wol-Latn", "yo": "yor-Latn",
    "zh": "zho-Hans", "zu": "zul-Latn",
}
# fmt: on
"""ISO 639-1 as our tasks have it → ISO 639-3 and script as mteb has it."""
_CHINESE = {"zh_cn": "zho-Hans", "zh_hk": "zho-Hant", "zh_tw": "zho-Hant"}
_CODES = {code[:3]: code for code in _LANGUAGES.values()} | {"swh": "swh-Latn", "cmn": "cmn-Hans", "pes": "pes-Arab"}
_SCRIPTS = {"Latn": "Latin", "Cyrl": "Cyrillic", "Arab": "Arabic", "Deva": "Devanagari", "Hans": "Chinese"}
_FAMILIES = {
    "Indo-European": "af bg bn cs da de el en es fa fr hi it mr nl no pl pt ro ru sr sv uk ur",
    "Afro-Asiatic": "ar ha he",
    "Austronesian": "id jv ms tl",
    "Dravidian": "ml ta te",
    "Niger-Congo": "ig rw sw tw wo yo zu",
    "Turkic": "az kk tr",
    "Uralic": "et fi hu",
}
"""ISO 639-1 codes; the families of which the suites have a single language are left to `other`."""
_FAMILY = {_LANGUAGES[code]: family for family, codes in _FAMILIES.items() for code in codes.split()}
_RESOURCES = {
    "4–5": "ar cs de en es eu fa fi fr hi hu it ja ko nl pl pt ru sr sv tr vi zh",
    "3": "af bg bn da el et he id ka kk ms ro ta th tl uk ur",
}
"""Classes of Joshi et al. (2020, The State and Fate of Linguistic Diversity); others are 0 to 2."""
_RESOURCE = {_LANGUAGES[code]: kind for kind, codes in _RESOURCES.items() for code in codes.split()}
_FEWEST = 4


def languages(name: str) -> list[str]:
    """Return the languages in a task's name: `sw` → `swa-Latn`, `deu-fra` → both; none for a data set's name."""
    codes = [_LANGUAGES.get(part) or _CODES.get(part) or _CHINESE.get(part) for part in name.split("-")]
    return [code for code in codes if code] if all(codes) else []


@dataclass(frozen=True)
class LanguageGroup:
    """Some tasks of a board, by a property of their language.

    Args:
        by: the property: `Script`, `Resource class` or `Family`.
        name: its value.
        tasks: ids.
    """

    by: str
    name: str
    tasks: tuple[str, ...]


def groups(tasks: Mapping[str, str]) -> list[LanguageGroup]:
    """Group tasks, given by id with their names; scripts and families of a single task are pooled as `other`.

    There are none for fewer than four languages, where a task is in no known one, or where a property divides nothing.
    """
    codes = {task: _language(name) for task, name in tasks.items()}
    if len(tasks) < _FEWEST or not all(codes.values()):
        return []
    language_groups = []
    for by, values in (
        ("Script", {task: _SCRIPTS.get(code.partition("-")[2], "other") for task, code in codes.items()}),
        ("Resource class", {task: _RESOURCE.get(code, "0–2") for task, code in codes.items()}),
        ("Family", {task: _FAMILY.get(code, "other") for task, code in codes.items()}),
    ):
        counts = Counter(values.values())
        pooled = {
            task: "other" if by != "Resource class" and counts[value] < 2 else value for task, value in values.items()
        }
        names = sorted(set(pooled.values()), key=lambda name: (name == "other", name))
        if len(names) > 1:
            language_groups += [LanguageGroup(by, name, tuple(t for t in tasks if pooled[t] == name)) for name in names]
    return language_groups


def split_by_pretraining(system: System, tasks: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """Divide tasks into those whose language a system's pretraining corpus has, and others; both empty if unknown."""
    counts = [facts.get("languages") for facts in stage_facts(system.first, "prepare")]
    codes = {_LANGUAGES.get(code) for by_language in counts if isinstance(by_language, dict) for code in by_language}
    if not codes or not system.first.content.system.budget:
        return set(), set()
    covered = {task for task, name in tasks.items() if _language(name) in codes}
    return covered, set(tasks) - covered


def average(values: Mapping[str, float], tasks: Collection[str]) -> float | None:
    """Return the mean of a row's tasks; None where it lacks one, or for no task."""
    task_values = [values[task] for task in tasks if task in values]
    return mean(task_values) if task_values and len(task_values) == len(tasks) else None


def _language(name: str) -> str:
    """Return the language of a task, of a pair the one that is not English; empty if it is not known."""
    codes = languages(name)
    return next((code for code in codes if code != _LANGUAGES["en"]), codes[0] if codes else "")
