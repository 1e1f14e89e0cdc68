"""The protocol card of every suite: what is measured and how, licences, citation, and the boards it leads to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.substitutes import mark
from leaderboard.kit import Files, Renderer, Site, SuiteShown
from leaderboard.places import FIRST, Page, pages
from leaderboard.text import slug


@dataclass(frozen=True)
class Card:
    """A suite's page.

    Args:
        suite: what the plugin tells of it.
        stem: path of the page, without the ending.
        boards: pages of its boards, of every kind of data.
    """

    suite: SuiteShown
    stem: str
    boards: tuple[Page, ...]

    @property
    def kind(self) -> str:
        """Whether it is the benchmark itself or stands for one."""
        return mark(self.suite.stands_for) or "the benchmark itself, by its official protocol"

    @property
    def licences(self) -> tuple[str, ...]:
        """Licences of its files, each once, however it ends."""
        return tuple(dict.fromkeys(licence.removesuffix(".") for licence in self.suite.licences if licence))

    @property
    def versions(self) -> tuple[str, ...]:
        """Versions of the suite that this site has results of."""
        return tuple(dict.fromkeys(page.board.version for page in self.boards))


def files(site: Site, renderer: Renderer) -> Files:
    """`protocols/index.html` and a page a suite; nothing where no plugin tells of suites."""
    if not site.shown.suites:
        return
    cards = _cards(site)
    yield (
        "protocols/index.html",
        renderer.page("protocols.html", "protocols/index", title="Protocols", cards=cards),
    )
    for card in cards:
        yield (
            f"{card.stem}.html",
            renderer.page(
                "protocol.html",
                card.stem,
                title=f"{card.suite.title}: protocol",
                card=card,
                standing=f"{stem(card.suite.stands_for)}.html",
                boards=_rows(card.boards),
            ),
        )


def stem(suite: str) -> str:
    """Where the page of a suite lies, without the ending."""
    return f"protocols/{slug(suite)}"


def _cards(site: Site) -> tuple[Card, ...]:
    """Every suite with its boards: benchmarks first, then substitutes, by name."""
    made = pages(site.boards)
    every = sorted(site.shown.suites.values(), key=lambda suite: (bool(suite.stands_for), suite.name))
    return tuple(
        Card(suite, stem(suite.name), tuple(page for page in made if page.board.suite == suite.name)) for suite in every
    )


def _rows(boards: Sequence[Page]) -> list[tuple[Page, str]]:
    """Boards with what is said of their data."""
    return [(page, "official" if page.board.data == FIRST else f"{page.board.data} data") for page in boards]
