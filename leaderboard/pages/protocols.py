"""The protocol card of every suite: what is measured and how, licences, citation, and the boards it leads to."""

from dataclasses import dataclass

from bench.core.publications import mark
from leaderboard.site.render import Files, Renderer
from leaderboard.site.site import FIRST, Page, Site, SuiteShown, pages
from leaderboard.site.text import slug


@dataclass(frozen=True)
class Card:
    """A suite's page."""

    suite: SuiteShown
    stem: str  # path of the page, without the ending
    boards: tuple[Page, ...]  # pages of its boards, of every kind of data

    @property
    def kind(self) -> str:
        """Whether it is the benchmark itself or a substitute."""
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
    """`protocols/index.html` and a page a suite, benchmarks before substitutes; nothing without suites of plugins."""
    if not site.shown.suites:
        return
    made = pages(site.boards)
    cards = [
        Card(suite, stem(suite.name), tuple(page for page in made if page.board.suite == suite.name))
        for suite in sorted(site.shown.suites.values(), key=lambda suite: (bool(suite.stands_for), suite.name))
    ]
    yield renderer.file("protocols.html", "protocols/index", title="Protocols", cards=cards)
    for card in cards:
        kinds = ["official" if page.board.data == FIRST else f"{page.board.data} data" for page in card.boards]
        yield renderer.file(
            "protocol.html",
            card.stem,
            title=f"{card.suite.title}: protocol",
            card=card,
            standing=f"{stem(card.suite.stands_for)}.html",
            boards=list(zip(card.boards, kinds, strict=True)),
        )


def stem(suite: str) -> str:
    """Return the path of a suite's page, without the ending."""
    return f"protocols/{slug(suite)}"
