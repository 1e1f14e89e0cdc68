"""CCP: a sentence predicts its context, against others of its language. Importing it imports no torch."""

from bench import Method, declared, hookimpl
from methods.ccp.config import CcpConfig

CCP = Method(
    config=CcpConfig,
    contract=CcpConfig.contract,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return CCP."""
    return [CCP]
