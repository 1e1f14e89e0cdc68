"""The protocol card of every suite: what is measured and how, licences, citation, and the boards it leads to."""

from typing import Any

from bench.core.publications import mark
from leaderboard.site.boards import FIRST
from leaderboard.site.render import Files, Renderer
from leaderboard.site.site import Site
from leaderboard.site.text import slug


def files(site: Site, renderer: Renderer) -> Files:
    """Yield `protocols/index.html` and a page a suite, benchmarks before proxies; nothing without suites of plugins."""
    if not site.catalogue.suites:
        return
    cards: list[dict[str, Any]] = [
        {
            "suite": suite,
            "stem": stem(suite.name),
            "boards": [board for board in site.boards if board.suite == suite.name],
            "reported": len(site.catalogue.reported.get(suite.name, ())),
            "kind": mark(suite.proxy_for) or "the benchmark itself, by its official protocol",
        }
        for suite in sorted(site.catalogue.suites.values(), key=lambda suite: (bool(suite.proxy_for), suite.name))
    ]
    yield renderer.page("protocols.html", "protocols/index", title="Protocols", cards=cards)
    for card in cards:
        suite, boards = card["suite"], card["boards"]
        licences = [suite.licence, *(release.licence for release in (suite.releases() if suite.releases else ()))]
        kinds = ["official" if board.data == FIRST else f"{board.data} data" for board in boards]
        yield renderer.page(
            "protocol.html",
            card["stem"],
            title=f"{suite.title}: protocol",
            card=card,
            licences=list(dict.fromkeys(licence.removesuffix(".") for licence in licences if licence)),
            versions=list(dict.fromkeys(board.version for board in boards)),
            benchmark=f"{stem(suite.proxy_for)}.html",
            boards=list(zip(boards, kinds, strict=True)),
        )


def stem(suite: str) -> str:
    """Return the path of a suite's page, without the ending."""
    return f"protocols/{slug(suite)}"
