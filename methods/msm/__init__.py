"""MSM: a sentence is predicted from those around it. Importing it imports no torch."""

from bench import Method, declared, hookimpl
from methods.msm.config import MsmConfig

MSM = Method(
    config=MsmConfig,
    contract=MsmConfig.contract,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return msm."""
    return [MSM]
