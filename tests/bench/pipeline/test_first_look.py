"""The task to begin with, among tasks whose costs and questions are made up."""

from types import SimpleNamespace
from typing import Any

from bench.pipeline.first_look import ENOUGH, FirstTask, first_tasks


def stage(key: str, *before: Any) -> Any:
    return SimpleNamespace(key=key, name="stage", before=before)


TRAIN = stage("train")


def planned(suite: str, **questions: int) -> tuple[list[Any], list[list[Any]]]:
    """A cell of a suite, each of its tasks scored on so many questions after a training that all share."""
    subsets = []
    for task, count in questions.items():
        encode = stage(f"encode {suite}/{task}", TRAIN)
        score = SimpleNamespace(
            key=f"score {task}", name="score", before=(encode,), subset=SimpleNamespace(questions=float(count))
        )
        named: dict[str, Any] = {"task": SimpleNamespace(id=f"{suite}/{task}"), "subset": SimpleNamespace(name="")}
        subsets.append(SimpleNamespace(**named, score=score))
    return [SimpleNamespace(suite=SimpleNamespace(name=suite))], [subsets]


def test_the_cheapest_with_enough_questions() -> None:
    """Bengali is cheaper and has too few; English has many and costs most. Training counts once in either sum."""
    cells, subsets = planned("wiki", bn=ENOUGH - 1, sw=ENOUGH, en=5 * ENOUGH)
    seconds = {"train": 10.0, "encode wiki/bn": 1.0, "encode wiki/sw": 5.0, "encode wiki/en": 100.0}
    expected = [FirstTask("wiki", "sw", ENOUGH, seconds=15.0, of=116.0)]
    assert first_tasks(cells, subsets, seconds) == expected


def test_none_where_it_helps_nobody() -> None:
    """A single task; questions that nobody counted; and a training that takes more than half of everything."""
    for questions in ({"sw": ENOUGH}, {"sw": 0, "en": 0}):
        assert first_tasks(*planned("wiki", **questions), {"train": 1.0}) == []
    cells, subsets = planned("wiki", sw=ENOUGH, en=ENOUGH)
    seconds = {"train": 100.0, "encode wiki/sw": 1.0, "encode wiki/en": 50.0}
    assert first_tasks(cells, subsets, seconds) == []
