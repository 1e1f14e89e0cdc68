"""Languages of tasks: their groups, and which of them a system was pretrained on."""

from pathlib import Path
from typing import Any

from bench.evaluation.results import results as read_results
from bench.types import Macro
from leaderboard.site.boards import boards
from leaderboard.site.languages import average, groups, seen
from tests.leaderboard.conftest import Build, Publisher

MRTYDI = ("ar", "bn", "en", "fi", "id", "ja", "ko", "ru", "sw", "te", "th")


def test_groups_by_hand() -> None:
    """Scripts and families of two languages or more, others together; of a pair what is not English."""
    found = {(one.by, one.name): " ".join(one.tasks) for one in groups({name: name for name in MRTYDI})}
    assert found == {
        ("Script", "Latin"): "en fi id sw",
        ("Script", "other"): "ar bn ja ko ru te th",
        ("Resource class", "4–5"): "ar en fi ja ko ru",
        ("Resource class", "3"): "bn id th",
        ("Resource class", "0–2"): "sw te",
        ("Family", "Indo-European"): "bn en ru",
        ("Family", "other"): "ar fi id ja ko sw te th",
    }
    pairs = {name: name for name in ("eng-fra", "deu-eng", "eng-rus", "bul-eng")}
    counts = [("Cyrillic", 2), ("Latin", 2), ("3", 1), ("4–5", 3)]
    assert [(one.name, len(one.tasks)) for one in groups(pairs)] == counts
    assert groups({name: name for name in ("arguana", "fiqa", "nq", "quora")}) == []
    assert groups({name: name for name in ("de", "en", "fr")}) == [], "too few"
    assert average({"a": 0.5, "b": 0.25}, ("a", "b")) == 0.375
    assert average({"a": 0.5}, ("a", "b")) is None


def test_a_board_shows_its_groups(made: Publisher, results: Path, site: Build) -> None:
    """Means of the tasks by hand; languages of the corpus are those that its preparation counted."""
    names = ("ar", "en", "fi", "ru")
    macros = (Macro("Avg.", tuple(f"made/{name}" for name in names)),)
    tasks = {f"made/{name}": {"": [0.1 * at + 0.1]} for at, name in enumerate(names)}
    facts: dict[str, Any] = {"facts": {"prepare": {"languages": {"ar": {}, "en": {}, "ja": {}}}}}
    made("crop", tasks, macros=macros, about={"budget": 5}, leg=facts)
    made("bm25", tasks, macros=macros)
    (board,) = boards(read_results(results))
    titles = {column.task: column.name for column in board.columns}
    assert seen(board.systems["crop"], titles) == ({"made/ar", "made/en"}, {"made/fi", "made/ru"})
    assert seen(board.systems["bm25"], titles) == (set(), set())
    page = site()["suites/made/unsupervised.html"].decode()
    row = page[page.index('id="languages"') :].partition('<th scope="row">crop</th>')[2].partition("</tr>")[0]
    cells = [cell.partition("<")[0].strip() for cell in row.split('<td class="n">')[1:]]
    assert cells == ["25.0", "25.0", "30.0", "20.0", "15.0", "35.0"], "Latin, other; Indo-European, other; seen, not"
