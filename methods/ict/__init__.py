"""The inverse cloze task: which block was a sentence taken from. Importing it imports no torch."""

from bench import Method, declared, hookimpl
from methods.ict.config import IctConfig

ICT = Method(
    config=IctConfig,
    contract=IctConfig.contract,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return the inverse cloze task."""
    return [ICT]
