"""A row as an entry for BibTeX, with what is to be cited next to it: the method's paper and the benchmark's."""

from collections.abc import Iterator, Mapping

from bench.core.publications import marked
from bench.evaluation.tables import latex_text
from leaderboard.site import captions
from leaderboard.site.rows import Entry
from leaderboard.site.site import Site
from leaderboard.site.text import plural, slug

_BRACES = {r"\{": r"\textbraceleft{}", r"\}": r"\textbraceright{}"}
"""BibTeX counts a brace behind a backslash too."""


def bibtex(entry: Entry, site: Site) -> str:
    """Return the entries for a row: the row itself, its method and its suite where these name what to cite.

    Nobody knows who ran a row and when, so it has no author, and for its year that of the site's build.
    """
    board, row, catalogue = entry.board, entry.row, site.catalogue
    versions = sorted({str(raw["harness"]) for _, _, _, raw in entry.subsets() if raw.get("harness")})
    seeds = f"{plural(len(row.seeds), 'seed')}: {', '.join(map(str, row.seeds))}"
    data = "" if board.proxy_for else f"{board.data} data"
    parts = [
        _misc(
            entry.id,
            {
                "title": f"{row.name} on {marked(captions.heading(board), board.proxy_for)}",
                "howpublished": " ".join(["retrieval-bench", *versions]),
                "year": site.built[:4],
                "note": ", ".join(filter(None, (data, seeds, f"system {row.system.hash}"))),
            },
        )
    ]
    cited = {
        f"method-{slug(row.system.method)}": (row.system.method, catalogue.methods.get(row.system.method)),
        f"suite-{slug(board.suite)}": (board.suite, catalogue.suites.get(board.suite)),
    }
    parts += [
        _misc(key, {"title": getattr(about, "title", name), "note": about.citation})
        for key, (name, about) in cited.items()
        if about and about.citation
    ]
    return "\n\n".join(parts)


def _misc(key: str, values: Mapping[str, str]) -> str:
    return "\n".join([f"@misc{{{key},", *_fields(values), "}"])


def _fields(values: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each value that there is; in braces twice, so that no style changes its case."""
    for name, value in values.items():
        if value:
            written = latex_text(value)
            for brace, command in _BRACES.items():
                written = written.replace(brace, command)
            yield f"  {name} = {{{{{written}}}}},"
