"""The model card of an exported encoder: what it is, how it was made, what it scored, how to read texts with it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from bench.dense import Contract
from bench.reproducing import words

_HUB = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")


@dataclass(frozen=True)
class Facts:
    """What a card is made of.

    Args:
        name: of the exported folder.
        manifest: of the encoder's artefact.
        result: a result file's content, None where there is none.
        languages: of the corpus, as far as they are known.
        contracts: role → contract; `encoder` where one encoder serves both roles.
        citation: of the method.
    """

    name: str
    manifest: Mapping[str, Any]
    result: Mapping[str, Any] | None
    languages: Sequence[str]
    contracts: Mapping[str, Contract]
    citation: str


def card(facts: Facts) -> str:
    """Return the card, Markdown with a YAML head; the licence is left to whoever publishes the model."""
    places = Environment(
        loader=PackageLoader("bench"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (Markdown, not HTML)
    )
    system = (facts.result or {}).get("system", {})
    identity = facts.manifest["identity"]
    backbone = str(system.get("backbone") or _backbone(identity))
    return places.get_template("model_card.md").render(
        name=facts.name,
        label=system.get("label") or identity.get("method") or facts.manifest["title"],
        method=system.get("method") or identity.get("method", ""),
        languages=list(facts.languages),
        backbone=backbone,
        hub=backbone if _HUB.fullmatch(backbone) and not Path(backbone).exists() else "",
        facts=_rows(facts, system),
        scores=_scores(facts.result) if facts.result else [],
        result=facts.result,
        command=shlex.join(words([facts.result], whole=False)) if facts.result else "",
        contracts=facts.contracts,
        plain=all(contract.layer == -1 for contract in facts.contracts.values()),
        citation=facts.citation,
    )


def _budget(identity: Mapping[str, Any]) -> str:
    """What the training was given; empty for an encoder that was not trained."""
    if identity.get("flops"):
        return f"{identity['flops']:.3g} floating-point operations"
    return f"{identity['tokens']:,} tokens" if "tokens" in identity else ""


def _backbone(identity: Mapping[str, Any]) -> str:
    """The backbone that an artefact names itself; a folder's is known by the hashes of its files alone."""
    found = identity.get("backbone")
    return found if isinstance(found, str) else ""


def _rows(facts: Facts, system: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What precedes the test, in words."""
    identity, found = facts.manifest["identity"], facts.manifest["facts"]
    seed = identity.get("seed")
    tokens = found.get("tokens")
    rows = [
        ("method", f"{system.get('method') or identity.get('method', '')} {identity.get('version', '')}".strip()),
        ("backbone", str(system.get("backbone") or _backbone(identity))),
        ("corpus", str((system.get("corpus") or {}).get("name", ""))),
        ("languages", ", ".join(facts.languages)),
        ("budget", _budget(identity)),
        ("tokens seen", f"{tokens:,} in {found.get('steps', 0):,} steps" if isinstance(tokens, int) else ""),
        ("seed", "" if seed is None else str(seed)),
        ("made by", f"retrieval-bench {version('retrieval-bench')}, artefact {facts.manifest['key']}"),
    ]
    return [(name, value) for name, value in rows if value]


def _scores(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row a leg of a task and one an average: its name and its measures in percent."""
    rows = [
        {"name": f"{task} {leg}".strip(), "measures": entry["measures"]}
        for task, legs in result["tasks"].items()
        for leg, entry in legs.items()
    ]
    rows += [{"name": average["name"], "measures": average["measures"]} for average in result["macro"]]
    return rows
