"""The page of a row: what it says of the data that the row was computed from."""

from tests.leaderboard.conftest import Build, Publisher


def test_passages_that_were_compared_with_nothing_are_said_to_be(publish_result: Publisher, site: Build) -> None:
    """On the pages of the rows over them, and of no other."""
    mark = "passages put there by hand"
    for label, metadata in (("crop", {"validate": {"unverified": mark}}), ("bm25", {"validate": {"documents": 3}})):
        publish_result(label, {"xor-retrieve/ar": {"": {"R@2kt": [1.0, 0.5]}}}, subset={"metadata": metadata})
    rows = {name: content.decode() for name, content in site().items() if name.startswith("runs/")}
    pages = {label: page for name, page in rows.items() for label in ("crop", "bm25") if f"-{label}" in name}
    assert {label: (mark in page, "not compared" in page) for label, page in pages.items()} == {
        "crop": (True, True),
        "bm25": (False, False),
    }
