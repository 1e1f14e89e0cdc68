"""Every file of a site: the families of pages, one after the other, and the links between them."""

from __future__ import annotations

from leaderboard.assets import assets
from leaderboard.kit import Family, Renderer, Site
from leaderboard.links import settled
from leaderboard.pages import ablations, index, protocols, reported, rows, suites
from leaderboard.places import pages

__all__ = ["FAMILIES", "files", "pages"]

FAMILIES: tuple[Family, ...] = (
    # One line a family; the order decides nothing but which of two pages of one name is the second.
    index.files,
    suites.files,
    reported.files,
    protocols.files,
    ablations.files,
    rows.files,
)
"""All families of pages."""


def files(site: Site) -> dict[str, bytes]:
    """Every file of the site by its path; the same site always gives the same bytes."""
    renderer = Renderer(site)
    found = assets()
    for family in FAMILIES:
        for name, content in family(site, renderer):
            if name in found:
                raise ValueError(f"{name}: two pages of one name")
            found[name] = content
    return {
        name: settled(name, content, found) if name.endswith(".html") else content for name, content in found.items()
    }
