"""Stages one after the other in this process."""

from collections.abc import Sequence

from bench.store.graph import Listener, make
from bench.store.stage import Stage
from bench.store.store import Store


class LocalExecutor:
    """The default: one stage at a time, each free to use all cores."""

    def run(self, items: Sequence[Stage], store: Store, listener: Listener) -> None:
        """Make every stage in the order given; stop at the first failure, with all finished stages kept."""
        for item in items:
            make(item, store, listener)
