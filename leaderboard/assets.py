"""The style and the script that all pages share: partials of `static/css` and `static/js`, joined in name order.

Margins and lines of comment are left out, which needs partials without texts over several lines. The theme has a script
of its own, which runs before the page is drawn.
"""

from __future__ import annotations

from importlib import resources

STYLE, SCRIPT, THEME = "static/style.css", "static/script.js", "static/theme.js"


def assets() -> dict[str, bytes]:
    """The shared files by their path in the site; the script is one function, so that its parts see each other only."""
    script = f'"use strict";\n(function () {{\n{_joined("js")}}})();\n'
    theme = resources.files("leaderboard").joinpath(THEME).read_bytes()
    return {STYLE: _joined("css").encode(), SCRIPT: script.encode(), THEME: theme}


def _joined(kind: str) -> str:
    """All partials of a kind, in the order of their names."""
    parts = resources.files("leaderboard").joinpath("static", kind).iterdir()
    found = sorted((part for part in parts if part.name.endswith(f".{kind}")), key=lambda part: part.name)
    lines = (line.strip() for part in found for line in part.read_text(encoding="utf-8").splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("//"))
