"""Crop: two pieces of a document find each other among those of other documents. Importing it imports no torch."""

from bench import Method, declared, hookimpl
from methods.crop.config import CropConfig

CROP = Method(
    config=CropConfig,
    contract=CropConfig.contract,
    **declared(__name__),
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return crop."""
    return [CROP]
