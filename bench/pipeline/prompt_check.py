"""Prompts that were forgotten: which systems of a run read texts without the prompts that their encoder wants."""

from collections.abc import Sequence
from pathlib import Path

from bench.pipeline.cells import Cell
from bench.pipeline.systems.dense import Dense
from bench.retrieval.backbones import SCRATCH
from bench.retrieval.prompts import WantedPrompts, wanted
from bench.types import Method


def prompt_warnings(cells: Sequence[Cell], methods: Sequence[Method]) -> list[str]:
    """Return a sentence for each system that reads texts without the prompts that its encoder wants.

    Args:
        cells: of a run.
        methods: whose presets may say what prompts an encoder wants.
    """
    sentences: dict[str, None] = {}
    for cell in cells:
        for system in cell.system.leaves:
            if not isinstance(system, Dense) or system.untrained:
                continue
            if not system.backbone or system.backbone.startswith(SCRATCH):
                continue
            if prompts := wanted(system.backbone, methods):
                missing = [prompts.missing(system.contract(task)) for task in cell.tasks]
                sentences |= dict.fromkeys(_sentence(system, prompts, roles) for roles in missing if roles)
    return [*sentences]


def _sentence(system: Dense, prompts: WantedPrompts, roles: Sequence[str]) -> str:
    texts = {role: getattr(prompts, role) for role in roles}
    described = " and ".join(f"{text!r} before a {role}" for role, text in texts.items())
    # As TOML in quotation marks, for a blank at the end would be lost.
    sets = " ".join(f"--set 'encode.{role}_prompt=\"{text}\"'" for role, text in texts.items())
    return (
        f"{system.label} reads texts without the prompts that {Path(system.backbone).name} wants "
        f"({described}: {prompts.source}); if they were forgotten, type {sets}"
    )
