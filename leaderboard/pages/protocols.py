"""The protocol card of every suite: what is measured and how, licences, citation, and the boards it leads to."""

from dataclasses import dataclass

from bench.core.publications import mark
from leaderboard.site.boards import FIRST, Board
from leaderboard.site.render import Files, Renderer
from leaderboard.site.site import Site, SuiteCard
from leaderboard.site.text import slug


@dataclass(frozen=True)
class ProtocolPage:
    """A suite's page.

    Args:
        suite: what its plugin says of it.
        stem: path of the page, without the ending.
        boards: its boards, of every kind of data.
    """

    suite: SuiteCard
    stem: str
    boards: tuple[Board, ...]

    @property
    def kind(self) -> str:
        """Whether it is the benchmark itself or a proxy."""
        return mark(self.suite.proxy_for) or "the benchmark itself, by its official protocol"


def files(site: Site, renderer: Renderer) -> Files:
    """Yield `protocols/index.html` and a page a suite, benchmarks before proxies; nothing without suites of plugins."""
    if not site.catalogue.suites:
        return
    cards = [
        ProtocolPage(suite, stem(suite.name), tuple(board for board in site.boards if board.suite == suite.name))
        for suite in sorted(site.catalogue.suites.values(), key=lambda suite: (bool(suite.proxy_for), suite.name))
    ]
    yield renderer.file("protocols.html", "protocols/index", title="Protocols", cards=cards)
    for card in cards:
        kinds = ["official" if board.data == FIRST else f"{board.data} data" for board in card.boards]
        yield renderer.file(
            "protocol.html",
            card.stem,
            title=f"{card.suite.title}: protocol",
            card=card,
            licences=list(dict.fromkeys(licence.removesuffix(".") for licence in card.suite.licences if licence)),
            versions=list(dict.fromkeys(board.version for board in card.boards)),
            benchmark=f"{stem(card.suite.proxy_for)}.html",
            boards=list(zip(card.boards, kinds, strict=True)),
        )


def stem(suite: str) -> str:
    """Return the path of a suite's page, without the ending."""
    return f"protocols/{slug(suite)}"
