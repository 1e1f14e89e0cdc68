"""Auto-MLM: pairs separated by hinges, and hidden tokens predicted with the sentence's own vector. Torch-free."""

from bench import Method, declared, hookimpl
from methods.auto_mlm.config import AutoMlmConfig

AUTO_MLM = Method(
    config=AutoMlmConfig,
    contract=AutoMlmConfig.contract,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return auto-mlm."""
    return [AUTO_MLM]
