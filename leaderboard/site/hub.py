"""Results in the words of others: mteb's `TaskResult`, and Hugging Face's `model-index`.

mteb (2.x, `mteb.results.TaskResult`) wants `dataset_revision`, `task_name`, `mteb_version`, `evaluation_time` and
`scores`: by split a list of objects with `hf_subset`, `languages`, `main_score` and measures by mteb's names. What we
do not have is null; what mteb does not know (`note`, `seeds`) it passes over. A task that mteb has bears its name there
(`mteb.json`); of the others, the suite is the task, its tasks are the subsets. `model-index` (the Hub's model
card metadata) wants of every result the type of its task, type and name of its data set, and type and value of its
metrics. Both hold fractions, means over seeds.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bench.core.installed import DISTRIBUTION, version_of
from bench.core.messages import bare
from bench.evaluation.eval_results import MTEB, measure_name
from bench.evaluation.results.format import Content
from bench.evaluation.results.read import Result
from bench.evaluation.tables import visible
from leaderboard.site import text
from leaderboard.site.captions import notes
from leaderboard.site.languages import languages
from leaderboard.site.site import FIRST

SPLIT = "test"
_NO_TASK = "mteb has no task of this name: it reads this file, but loads no task for it"
_NO_MAIN = "main_score is null: mteb's main measure of this task is another than ours"
Group = tuple[Result, ...]
"""Results of one system on one suite in one setting, one a seed."""


def grouped(results: Iterable[Result]) -> list[Group]:
    """Group the seeds of a system, by suite, setting and kind of data."""
    found: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        about = result.content
        key = (about.data, about.suite.name, about.setting, about.system.label, about.system.hash)
        found.setdefault(key, []).append(result)
    return [tuple(sorted(found[key], key=lambda one: one.content.seed)) for key in sorted(found)]


def mteb_files(groups: Sequence[Group]) -> Iterator[tuple[str, bytes]]:
    """Yield a path, `SYSTEM/HASH/TASK-SETTING.json`, and the content of every system on every task of mteb.

    What mteb has no task for is in a file of its suite; other data than official carry their name in path and task.
    """
    for group in groups:
        content = group[0].content
        kind = "" if content.data == FIRST else f"{content.data}-"
        place = f"{text.slug(content.system.label)}/{content.system.hash[:12]}"
        for task, scores in _by_task(group).items():
            name = f"{place}/{kind}{text.slug(f'{task or content.suite.name}-{content.setting}')}.json"
            made = mteb_result(group, task, scores)
            yield name, (json.dumps(made, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def mteb_result(group: Group, task: str, scores: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """One system on a task of mteb, or on what it has none for, in mteb's layout; scores are by split."""
    content = group[0].content
    main = {score["main_score"] for own in scores.values() for score in own}
    said = _NO_MAIN if None in main else "" if task else _NO_TASK
    return {
        "dataset_revision": content.suite.version,
        "task_name": task or _suite_name(content),
        "mteb_version": None,
        "scores": scores,
        "evaluation_time": None,
        "kg_co2_emissions": None,
        "setting": content.setting,
        "seeds": [one.content.seed for one in group],
        "note": "; ".join(filter(None, (*notes(content.data, content.suite.stands_for), said))),
    }


def without_name(written: Iterable[bytes]) -> list[str]:
    """Return the tasks in files of mteb's layout that mteb has no name for, each once."""
    every = [json.loads(raw) for raw in written]
    plain = [(one["task_name"], score) for one in every if _NO_TASK in one["note"] for score in one["scores"][SPLIT]]
    return list(dict.fromkeys(f"{suite}/{score['hf_subset']}" for suite, score in plain))


def _by_task(group: Group) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Scores by task of mteb and split; under an empty name those of tasks that mteb does not have."""
    suite = group[0].content.suite
    official = group[0].content.data == FIRST and not suite.stands_for
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for task, leg, values in _scored(group):
        own = bare(task).removeprefix(f"{suite.name}/")
        plain = ("", f"{own}:{leg}" if leg else own, SPLIT, "")
        name, subset, split, main, *_ = MTEB.get(f"{task}:{leg}" if leg else task, plain) if official else plain
        scores = {measure_name(measure): value for measure, value in values.items()}
        ours = scores[measure_name(suite.primary) if suite.primary in values else next(iter(scores))]
        spoken = languages(own) or (["eng-Latn"] if name else [])
        about = {"main_score": scores.get(main) if main else ours, "hf_subset": subset, "languages": spoken}
        found.setdefault(name, {}).setdefault(split, []).append({**scores, **about})
    return found


def model_index(groups: Sequence[Group]) -> bytes:
    """The metadata block of a model card, YAML: one model a system, one result a task of a suite.

    Names and texts are quoted as JSON has them, which YAML reads alike.
    """
    said = dict.fromkeys(
        note for group in groups for note in notes(group[0].content.data, group[0].content.suite.stands_for)
    )
    lines = [*(f"# {visible(note)}" for note in said), "model-index:"]
    by_system: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        by_system.setdefault((group[0].content.system.label, group[0].content.system.hash), []).append(group)
    for (label, _), own in by_system.items():
        lines += [f"- name: {_quoted(label)}", "  results:"]
        for group in own:
            for task, leg, values in _scored(group):
                lines += _index_lines(group[0].content, task, leg, values)
    return ("\n".join(lines) + "\n").encode()


def _index_lines(content: Content, task: str, leg: str, values: Mapping[str, float]) -> list[str]:
    about = content.suite
    name = bare(task).removeprefix(f"{about.name}/")
    where = f"{name}:{leg}" if leg else name
    marked = ", ".join(notes(content.data, about.stands_for))
    title = f"{about.title} ({where}), {content.setting}" + (f"; {marked}" if marked else "")
    lines = [
        "  - task:",
        "      type: retrieval",
        "      name: Retrieval",
        "    dataset:",
        f"      type: {_quoted(_suite_name(content))}",
        f"      name: {_quoted(title)}",
        f"      config: {_quoted(where)}",
        f"      split: {SPLIT}",
        f"      revision: {_quoted(about.version)}",
        "    metrics:",
    ]
    for measure, value in values.items():
        lines += [
            f"    - type: {_quoted(measure_name(measure))}",
            f"      value: {value}",
            f"      name: {_quoted(measure)}",
        ]
    return lines


def _suite_name(content: Content) -> str:
    """The suite as others shall call it: other data than official are part of its name."""
    return content.suite.name if content.data == FIRST else f"{content.data}/{content.suite.name}"


def _scored(group: Group) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Yield task, leg and the means over seeds of every measure, the headline first; dev tasks are left out."""
    first = group[0].content.tested()
    for task, legs in sorted(first.tasks.items()):
        for leg in legs:
            found = [one.content.tasks.get(task, {}).get(leg) for one in group]
            held = [one for one in found if one is not None]
            shared = [name for name in legs[leg].measures if all(name in one.measures for one in held)]
            shared.sort(key=lambda name: name != group[0].content.suite.primary)
            means = {name: text.fraction(sum(one.measures[name] for one in held) / len(held)) for name in shared}
            if means:
                yield task, leg, means


def _quoted(value: str) -> str:
    return json.dumps(visible(value), ensure_ascii=False)


def every_eval_ever(board: Mapping[str, Any], now: int) -> Iterator[tuple[str, bytes]]:
    """Yield a name and a record of Every Eval Ever's schema 0.2.1 for each row of a board in JSON; `now` in seconds.

    The headline has its 95 % interval; of tasks the number of questions is given.
    """
    suite = board["suite"]
    name = suite["name"] if board["data"] == FIRST else f"{board['data']}/{suite['name']}"
    said = {"version": suite["version"], "data": board["data"], "note": board["note"] or ""}
    data = {"dataset_name": suite["title"], "source_type": "other", "additional_details": said}
    metric = {"evaluation_description": f"{board['measure']}, {board['setting']}", "lower_is_better": False}
    metric |= {"score_type": "continuous", "min_score": 0.0, "max_score": 1.0}
    source = {"source_name": "retrieval-bench leaderboard", "source_type": "evaluation_run"}
    source |= {"source_organization_name": "unknown", "evaluator_relationship": "other"}
    questions = {task["task"]: task["queries"] for task in board["tasks"]}
    for row in board["rows"]:
        scores: dict[str, Any] = {}
        if row["score"] is not None:
            scores[f"{name}: {board['headline']}"] = headline = {"score": row["score"]}
            if row["low"] is not None:
                ends = {"lower": row["low"], "upper": row["high"], "confidence_level": 0.95}
                headline["uncertainty"] = {"confidence_interval": ends, "num_samples": sum(questions.values())}
        for task, value in row["tasks"].items():
            scores[task] = {"score": value, "uncertainty": {"num_samples": questions[task]}}
        about = {"hash": row["hash"], "state": row["state"], "seeds": " ".join(map(str, row["seeds"]))}
        system = f"{row['system']}-{row['hash'][:12]}"
        record = {
            "schema_version": "0.2.1",
            "evaluation_id": f"{name}/{board['setting']}/{system}/{now}",
            "retrieved_timestamp": str(now),
            "source_metadata": source,
            "eval_library": {"name": DISTRIBUTION, "version": version_of(DISTRIBUTION) or "unknown"},
            "model_info": {"name": row["system"], "id": row["system"], "additional_details": about},
            "evaluation_results": [
                {"evaluation_name": called, "source_data": data, "metric_config": metric, "score_details": score}
                for called, score in scores.items()
            ],
        }
        place = f"{text.slug(name)}/{text.slug(system)}.json"
        yield place, (json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
