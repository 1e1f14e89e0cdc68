"""Contriever: two crops of a text belong together, against a queue of others. Importing it imports no torch."""

from bench import Method, declared, hookimpl
from methods.contriever.config import ContrieverConfig

CONTRIEVER = Method(
    config=ContrieverConfig,
    contract=ContrieverConfig.contract,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return Contriever."""
    return [CONTRIEVER]
