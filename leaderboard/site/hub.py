"""Results in the formats of others: mteb's `TaskResult`, Hugging Face's `model-index`, and Every Eval Ever's records.

mteb (2.x, `mteb.results.TaskResult`) wants `dataset_revision`, `task_name`, `mteb_version`, `evaluation_time` and
`scores`: by split a list of objects with `hf_subset`, `languages`, `main_score` and measures by mteb's names. What we
do not have is null. The files are not written through mteb's class, which drops `note` and `seeds`, and with them that
data are not official. A task that mteb has bears its name there (`mteb.json`); of the others, the suite is the task,
its tasks are the subsets. All numbers are fractions, means over seeds.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bench.core.installed import DISTRIBUTION, version_of
from bench.core.messages import bare, visible
from bench.evaluation.eval_results import MTEB, measure_name
from bench.evaluation.results.format import Content
from bench.evaluation.results.marks import marks
from bench.evaluation.results.read import Result
from leaderboard.site import text
from leaderboard.site.boards import FIRST
from leaderboard.site.captions import notes
from leaderboard.site.languages import languages

SPLIT = "test"
_NO_TASK = "mteb has no task of this name: it reads this file, but loads no task for it"
_NO_MAIN = "main_score is null: mteb's main measure of this task is another than ours"
Group = tuple[Result, ...]
"""Results of one system on one suite in one regime, one a seed."""


def group_seeds(results: Iterable[Result]) -> list[Group]:
    """Group the seeds of a system, by suite, regime and kind of data."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        content = result.content
        key = (content.data, content.suite.name, content.regime, content.system.label, content.system.hash)
        groups.setdefault(key, []).append(result)
    return [tuple(sorted(groups[key], key=lambda result: result.content.seed)) for key in sorted(groups)]


def mteb_files(groups: Sequence[Group]) -> Iterator[tuple[str, bytes]]:
    """Yield a path, `SYSTEM/HASH/TASK-REGIME.json`, and the content of every system on every task of mteb.

    What mteb has no task for is in a file of its suite; other data than official carry their name in path and task.
    """
    for group in groups:
        content = group[0].content
        kind = "" if content.data == FIRST else f"{content.data}-"
        folder = f"{text.slug(content.system.label)}/{content.system.hash[:12]}"
        for task, scores in _scores_by_task(group).items():
            main = {score["main_score"] for split in scores.values() for score in split}
            remark = _NO_MAIN if None in main else "" if task else _NO_TASK
            task_result = {
                "dataset_revision": content.suite.version,
                "task_name": task or _suite_name(content),
                "mteb_version": None,
                "scores": scores,
                "evaluation_time": None,
                "kg_co2_emissions": None,
                "regime": content.regime,
                "seeds": [result.content.seed for result in group],
                "note": "; ".join(
                    filter(None, (*notes(content.data, content.suite.proxy_for), *_marks(group), remark))
                ),
            }
            name = text.slug(f"{task or content.suite.name}-{content.regime}")
            yield f"{folder}/{kind}{name}.json", _json(task_result)


def _marks(group: Group) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentence for result in group for sentence in marks(result.whole)))


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def without_mteb_task(files: Iterable[bytes]) -> list[str]:
    """Return the tasks in files of mteb's layout that mteb has no name for, each once."""
    task_results = [json.loads(raw) for raw in files]
    return list(
        dict.fromkeys(
            f"{task_result['task_name']}/{score['hf_subset']}"
            for task_result in task_results
            if _NO_TASK in task_result["note"]
            for score in task_result["scores"][SPLIT]
        )
    )


def _scores_by_task(group: Group) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return scores by task of mteb and split; under an empty name those of tasks that mteb does not have."""
    suite = group[0].content.suite
    official = group[0].content.data == FIRST and not suite.proxy_for
    scores: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for task, subset, values in _means(group):
        name = bare(task).removeprefix(f"{suite.name}/")
        unknown = ("", f"{name}:{subset}" if subset else name, SPLIT, "")
        mteb_task, hf_subset, split, main, *_ = (
            MTEB.get(f"{task}:{subset}" if subset else task, unknown) if official else unknown
        )
        measures = {measure_name(measure): value for measure, value in values.items()}
        headline = measures[measure_name(suite.primary) if suite.primary in values else next(iter(measures))]
        codes = languages(name) or (["eng-Latn"] if mteb_task else [])
        labels = {"main_score": measures.get(main) if main else headline, "hf_subset": hf_subset, "languages": codes}
        scores.setdefault(mteb_task, {}).setdefault(split, []).append({**measures, **labels})
    return scores


def _suite_name(content: Content) -> str:
    """Return the suite's name for others: other data than official are part of it."""
    return content.suite.name if content.data == FIRST else f"{content.data}/{content.suite.name}"


def _means(group: Group) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Yield task, subset and the means over seeds of every measure, the headline first; dev tasks are left out."""
    first = group[0].content.tested()
    for task, subsets in sorted(first.tasks.items()):
        for name, subset in subsets.items():
            seeds = [seed for result in group if (seed := result.content.tasks.get(task, {}).get(name)) is not None]
            shared = [measure for measure in subset.measures if all(measure in seed.measures for seed in seeds)]
            shared.sort(key=lambda measure: measure != first.suite.primary)
            if shared:
                yield (
                    task,
                    name,
                    {
                        measure: text.fraction(sum(seed.measures[measure] for seed in seeds) / len(seeds))
                        for measure in shared
                    },
                )


def model_index(groups: Sequence[Group]) -> bytes:
    """Return the metadata block of a model card, YAML, of one system: a result for each task of each suite."""
    import yaml
    from huggingface_hub import EvalResult
    from huggingface_hub.repocard_data import eval_results_to_model_index

    label, results, remarks = visible(groups[0][0].content.system.label), list[Any](), dict[str, None]()
    for group in groups:
        content = group[0].content
        remarks_of_group = (*notes(content.data, content.suite.proxy_for), *_marks(group))
        remarks |= dict.fromkeys(remarks_of_group)
        evaluations = []
        for task, subset, values in _means(group):
            name = bare(task).removeprefix(f"{content.suite.name}/")
            config = f"{name}:{subset}" if subset else name
            title = f"{content.suite.title} ({config}), {content.regime}" + (
                f"; {', '.join(remarks_of_group)}" if remarks_of_group else ""
            )
            evaluations += [
                EvalResult(
                    task_type="retrieval",
                    task_name="Retrieval",
                    dataset_type=visible(_suite_name(content)),
                    dataset_name=visible(title),
                    dataset_config=visible(config),
                    dataset_split=SPLIT,
                    dataset_revision=visible(content.suite.version),
                    metric_type=visible(measure_name(measure)),
                    metric_name=visible(measure),
                    metric_value=value,
                )
                for measure, value in values.items()
            ]
        for model in eval_results_to_model_index(label, evaluations):  # by group: it merges regimes of one data set
            results += model["results"]
    index: str = yaml.safe_dump(
        {"model-index": [{"name": label, "results": results}]}, sort_keys=False, allow_unicode=True, width=1000
    )
    return ("".join(f"# {visible(remark)}\n" for remark in remarks) + index).encode()


def every_eval_ever(board: Mapping[str, Any], timestamp: int) -> Iterator[tuple[str, bytes]]:
    """Yield a path and a record of Every Eval Ever's schema 0.2.1 for each row of a board.

    Args:
        board: as its JSON file has it.
        timestamp: the time, in seconds.

    Yields:
        The headline with its 95 % interval, and tasks with the number of their questions.
    """
    suite = board["suite"]
    name = suite["name"] if board["data"] == FIRST else f"{board['data']}/{suite['name']}"
    details = {"version": suite["version"], "data": board["data"], "note": board["note"] or ""}
    data = {"dataset_name": suite["title"], "source_type": "other", "additional_details": details}
    metric = {"evaluation_description": f"{board['measure']}, {board['regime']}", "lower_is_better": False}
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
        identity = {"hash": row["hash"], "state": row["state"], "seeds": " ".join(map(str, row["seeds"]))}
        identity |= {"marks": "; ".join(row["marks"])} if row["marks"] else {}
        system = f"{row['system']}-{row['hash'][:12]}"
        record = {
            "schema_version": "0.2.1",
            "evaluation_id": f"{name}/{board['regime']}/{system}/{timestamp}",
            "retrieved_timestamp": str(timestamp),
            "source_metadata": source,
            "eval_library": {"name": DISTRIBUTION, "version": version_of(DISTRIBUTION) or "unknown"},
            "model_info": {"name": row["system"], "id": row["system"], "additional_details": identity},
            "evaluation_results": [
                {"evaluation_name": title, "source_data": data, "metric_config": metric, "score_details": score}
                for title, score in scores.items()
            ],
        }
        yield f"{text.slug(name)}/{text.slug(system)}.json", _json(record)
