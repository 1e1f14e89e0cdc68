"""Prompts: those that an encoder wants (by its files, a preset or its family), and those that a file has by task."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bench.core.encoder_config import EncoderConfig
from bench.core.errors import UsageError
from bench.core.messages import bare
from bench.retrieval.model_files import model_json
from bench.types import Method

PROMPTS_FILE = "config_sentence_transformers.json"
"""The file in which a folder of sentence-transformers keeps its prompts."""
BY_SUITE = "suite"
"""What `encode.prompts` says in place of a file for prompts that a suite states."""
_ROLES = {"query": "query_prompt", "passage": "passage_prompt", "document": "passage_prompt"}
_BGE = "Represent this sentence for searching relevant passages: "


class _Family(NamedTuple):
    """Encoders of one kind by what their names hold."""

    pattern: str
    name: str
    query: str
    passage: str


# As the models' cards print them; models of the same name that follow instructions want others, and are left out.
_FAMILIES = (
    _Family(r"(^|[-_])e5-(small|base|large)(?!.*instruct)", "E5", "query: ", "passage: "),
    _Family(r"(^|[-_])bge-(small|base|large)-en", "BGE", _BGE, ""),
    _Family(r"(^|[-_])bge-(small|base|large)-zh", "BGE", "为这个句子生成表示以用于检索相关文章：", ""),
    _Family(r"(^|[-_])mxbai-embed", "mxbai-embed", _BGE, ""),
    _Family(r"nomic-embed-text", "Nomic Embed", "search_query: ", "search_document: "),
)


@dataclass(frozen=True)
class WantedPrompts:
    """The prompts that an encoder wants before queries and passages, and who says so, to end a sentence."""

    query: str
    passage: str
    source: str

    def missing(self, encoder_config: EncoderConfig) -> tuple[str, ...]:
        """Return the roles read without the prompt, or its blanks; a prompt in other words is a choice."""
        prompts = {"query": encoder_config.query_prompt, "passage": encoder_config.passage_prompt}
        declared = {role: getattr(self, role) for role in prompts}
        lacking = (role for role, prompt in prompts.items() if prompt.strip() in ("", declared[role].strip()))
        return tuple(role for role in lacking if prompts[role] != declared[role])


def declared_prompts(config: Mapping[str, Any]) -> tuple[str, str]:
    """Return the prompts of queries and of passages by a config of sentence-transformers, empty where it has none."""
    prompts, default = config.get("prompts") or {}, config.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(name, str) for name in (*prompts.values(), default or "")):
        fault = f"prompts {prompts!r:.80}, default_prompt_name {default!r:.40}"
        raise UsageError(where=PROMPTS_FILE, found=fault, expected="texts by name, and one of the names")
    usual = str(prompts.get(default, "")) if default else ""
    passages = (prompts[name] for name in ("document", "passage", "corpus") if name in prompts)
    return str(prompts.get("query", usual)), str(next(passages, usual))


def task_prompts(path: Path) -> dict[str, dict[str, str]]:
    """Read prompts by task: fields of an encoder config by the name of a suite or task, those of all tasks under ``.

    The file is a JSON object, or one that has it under `prompts`, as sentence-transformers writes it. Its names are
    roles (`query`, `passage` or `document`), suites (`mrtydi`) and tasks (`mrtydi/sw`); a value is a text, put before
    queries where it is not a role's, or texts by role.

    Raises `UsageError` for a file that cannot be read, or a value of another form.
    """
    content = model_json(path, expected="prompts by role, suite or task")
    listed = content.get("prompts", content)
    prompts: dict[str, dict[str, str]] = {"": {}}
    for name, value in listed.items() if isinstance(listed, dict) else ():
        by_role = {name if name in _ROLES else "query": value} if isinstance(value, str) else value
        if not isinstance(by_role, dict) or not all(
            role in _ROLES and isinstance(text, str) for role, text in by_role.items()
        ):
            expected = f"a text, or texts by role ({', '.join(_ROLES)})"
            raise UsageError(where=path, found=f"{value!r:.80} for {name!r:.80}", expected=expected)
        prompts.setdefault("" if name in _ROLES else name, {}).update(
            {_ROLES[role]: text for role, text in by_role.items()}
        )
    if not any(prompts.values()):
        raise UsageError(where=path, found="no prompt", expected="prompts by role, suite or task")
    return prompts


def prompts_of(prompts: Mapping[str, Mapping[str, str]], task: str) -> dict[str, str]:
    """Return the fields of an encoder config for a task by its id: those of all, its suite's over them, then its own.

    Example:
        >>> prompts_of({"": {"query_prompt": "q: "}, "beir": {"query_prompt": "claim: "}}, "mini/beir/claims")
        {'query_prompt': 'claim: '}
    """
    name = bare(task).partition("@")[0]
    fields: dict[str, str] = {}
    for key in ("", name.partition("/")[0], name):
        fields |= prompts.get(key, {})
    return fields


def wanted(backbone: str, methods: Iterable[Method]) -> WantedPrompts | None:
    """Return the prompts that an encoder of a backbone (or a preset of it) wants, None if unknown; no network.

    Raises `UsageError` if a file that declares prompts cannot be read.
    """
    name, _, revision = backbone.partition("@")
    files = _files(backbone, name, revision)
    if PROMPTS_FILE in files:
        query, passage = declared_prompts(model_json(files[PROMPTS_FILE]))
        if query or passage:
            return WantedPrompts(query, passage, f"its {PROMPTS_FILE} declares them")
    original = model_json(files["config.json"]).get("_name_or_path") if "config.json" in files else None
    names = [name, *([original] if isinstance(original, str) and original else [])]
    return _by_preset(names, methods) or _by_family(names)


def _by_preset(names: Iterable[str], methods: Iterable[Method]) -> WantedPrompts | None:
    presets = {
        str(preset.values["model"]).partition("@")[0]: (f"{method.name}/{name}", preset.values)
        for method in methods
        for name, preset in method.presets.items()
        if preset.values.get("query_prompt") or preset.values.get("passage_prompt")
        if preset.values.get("model")
    }
    for name in names:
        if name in presets:
            preset, values = presets[name]
            source = f"the preset {preset} has them"
            return WantedPrompts(values.get("query_prompt") or "", values.get("passage_prompt") or "", source)
    return None


def _by_family(names: Iterable[str]) -> WantedPrompts | None:
    for name in names:
        last = Path(name).name.lower()
        for family in _FAMILIES:
            if re.search(family.pattern, last):
                source = f"encoders of the family {family.name} are trained with them"
                return WantedPrompts(family.query, family.passage, source)
    return None


def _files(backbone: str, name: str, revision: str) -> dict[str, Path]:
    """The small files of a model that are at hand: in its folder, or in the cache."""
    wanted_files = (PROMPTS_FILE, "config.json")
    folder = Path(backbone).expanduser()
    if folder.is_dir():
        return {file: folder / file for file in wanted_files if (folder / file).is_file()}
    if backbone.startswith(("/", ".", "~")) or name.count("/") > 1:
        return {}
    from huggingface_hub import try_to_load_from_cache

    cached = {file: try_to_load_from_cache(name, file, revision=revision or None) for file in wanted_files}
    return {file: Path(path) for file, path in cached.items() if isinstance(path, str)}
