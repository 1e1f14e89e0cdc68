"""Fairness: every difference in what systems were given is a sentence with both values; none where there is none."""

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from bench.evaluation.compare.fairness import ComparedSystem, setting_differences, warnings

CORPUS = {"name": "mini", "digest": {"reader": "mini/1", "files": []}}
ENCODER_CONFIG = {"pooling": "mean", "layer": None, "query_prompt": "", "similarity": "cos"}
TUNING = {"trials": 8, "rule": "highest", "split": "dev", "suite": "mrtydi", "data": "mini", "seed": 0}


def result(changes: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
    """A result file's content; `changes` by dotted path, e.g. `system.budget`."""
    training = {"tokens": 1000, "flops": 5e9, "steps": 100, "finite": True, "hardware": "EPYC, AVX2"}
    passport: dict[str, Any] = {
        "queries": "0",
        "judgements": "0",
        "corpus": "0",
        "weights": None,
        "code": {},
        "published": [],
    }
    subset = {"measures": {"RR@100": 0.5}, "queries": 60, "protocol": {"k": 100, "tie": "trec"}, "passport": passport}
    precision = {"key": "train.precision", "value": "float32"}
    start = {"corpus": CORPUS, "backbone": "scratch:2x128", "encoder_config": ENCODER_CONFIG}
    suite = {"name": "mrtydi", "version": "1"}
    metadata = {"suite": suite, "regime": "unsupervised", "data": "mini", "seed": seed}
    system = {"deterministic": False, "budget": 1000, **start, "readout": {}, "settings": [precision]}
    content: dict[str, Any] = copy.deepcopy(
        {"system": system, **metadata, "tasks": {"mini/mrtydi/sw": {"": {**subset, "metadata": {"train": training}}}}}
    )
    for path, value in changes.items():
        node = content
        *parts, last = path.split("|")
        for part in parts:
            node = node[part]
        node[last] = value
    return content


BFLOAT16 = {"key": "train.precision", "value": "bfloat16"}
SUBSET = "tasks|mini/mrtydi/sw|"
ELSEWHERE = {"system|budget": None, "system|deterministic": True, "system|method": "pretrained"}


def system(label: str, **changes: Any) -> ComparedSystem:
    return ComparedSystem(label, [result({path.replace("__", "|"): value for path, value in changes.items()})])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"system|budget": 2_000_000}, "budget of pretraining (tokens): a has 1,000, b has 2,000,000"),
        ({"system|corpus": {"name": "wiki"}}, "pretraining corpus: a has mini, b has wiki"),
        ({"system|vectors": "float16"}, "stored vectors: a has float32, b has float16"),
        (
            {"system|corpus|digest": "other"},
            "pretraining corpus: a has mini, b has mini (the same name, with other documents)",
        ),
        ({"system|backbone": "xlm-r"}, "backbone: a has scratch:2x128, b has xlm-r"),
        ({"system|settings": [BFLOAT16]}, "precision of training: a has float32, b has bfloat16"),
        ({f"{SUBSET}|metadata|train|hardware": "H100"}, "hardware of training: a has EPYC, AVX2, b has H100"),
        ({f"{SUBSET}|metadata|train|tokens": 1300}, "tokens really seen in pretraining: a has 1,000, b has 1,300"),
        ({f"{SUBSET}|metadata|train|flops": 9e9}, "FLOPs of pretraining: a has 5e+09, b has 9e+09"),
        ({"system|tuning": TUNING}, "trials of tuning: a has none, b has 8"),
        ({"system|readout": {"query_prompt": "query: "}}, "readout (query_prompt): a has empty, b has query: "),
        ({"system|encoder_config": ENCODER_CONFIG | {"pooling": "cls"}}, "readout (pooling): a has mean, b has cls"),
        ({"suite|version": "2"}, "version of the suite: a has 1, b has 2"),
        ({f"{SUBSET}|protocol|k": 10}, "protocol on mrtydi/sw (k): a has 100, b has 10"),
        ({f"{SUBSET}|queries": 59}, "judged queries of mrtydi/sw: a has 60, b has 59"),
        ({"seed": 3}, "seeds: a has 0, b has 3"),
        (ELSEWHERE, "budget of pretraining: a has 1,000, b has an unknown one (trained elsewhere)"),
        ({"system|budget_flops": 2e12}, "budget of pretraining (operations): a has none, b has 2000000000000.0"),
        ({"system|post": {"kind": "whitening"}}, "post-processing: a has none, b has whitening"),
    ],
)
def test_every_difference_is_one_sentence_with_both_values(changes: Mapping[str, Any], sentence: str) -> None:
    """One thing changed, one warning."""
    assert warnings([system("a"), ComparedSystem("b", [result(changes)])]) == [sentence]


TUNED = "b was tuned on beir (mini data) and is compared on mrtydi (mini data)"


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({"trials": 16}, ["trials of tuning: a has 8, b has 16"]),
        ({"rule": "lowest"}, ["rule of selection: a has highest, b has lowest"]),
        ({"split": "train"}, ["part tuned on: a has dev, b has train"]),
        ({"suite": "beir"}, ["suite tuned on: a has mrtydi, b has beir", TUNED]),
        (
            {"data": "local"},
            ["data tuned on: a has mini, b has local", TUNED.replace("beir (mini", "mrtydi (local", 1)],
        ),
    ],
)
def test_tunings_are_compared(changes: Mapping[str, Any], sentences: list[str]) -> None:
    """Trials, rule, part; settings chosen on another suite are not the same help."""
    first, second = system("a", system__tuning=TUNING), system("b", system__tuning={**TUNING, **changes})
    assert warnings([first, second]) == sentences


def test_of_many_systems_a_property_is_one_sentence() -> None:
    """With those that have each value, or the range of many numbers; of a released encoder no seeds are asked."""
    few = [system(label, system__backbone=name) for label, name in zip("abcd", ("x", "y", "x", "x"), strict=True)]
    assert warnings(few) == ["backbone: x (a, c, d), y (b)"]
    many = [system(label, system__budget=budget) for label, budget in zip("abcde", (9, 1000, 20, 3, 20), strict=True)]
    assert warnings(many) == ["budget of pretraining (tokens): 3 (d) to 1,000 (b)"]
    tuned = [system("a"), *(system(label, system__tuning=TUNING) for label in "bcdef")]
    assert warnings(tuned) == ["trials of tuning: none (a), 8 (b, c, d and 2 more)"]


def test_what_is_no_difference() -> None:
    """The last step overshoots by up to 2 %; `crop@init` has budget 0 by its nature, BM25 has none and one seed."""
    assert not warnings([system("a"), ComparedSystem("b", [result({f"{SUBSET}|metadata|train|hardware": None})])]), (
        "an older result"
    )
    for tokens, differs in ((1019, False), (1025, True)):
        changed = ComparedSystem("b", [result({f"{SUBSET}|metadata|train|tokens": tokens})])
        assert bool(warnings([system("a"), changed])) is differs
    step = [{f"{SUBSET}|metadata|train|steps": 10, f"{SUBSET}|metadata|train|tokens": spent} for spent in (1000, 1080)]
    assert not warnings([ComparedSystem(label, [result(changes)]) for label, changes in zip("ab", step, strict=True)])
    start = system("crop@init", system__budget=0)
    sparse = ComparedSystem("bm25", [result({"seed": 5})])
    for key in ("budget", "corpus", "backbone", "encoder_config", "readout"):
        del sparse.contents[0]["system"][key]
    sparse.contents[0]["system"]["deterministic"] = True
    assert warnings([system("crop"), start, sparse]) == []
    assert warnings([system("crop", system__tuning=TUNING), start]) == []


def test_what_was_spent_is_compared_within_one_budget() -> None:
    """Of other budgets the budget alone is named, and of a training that counted nothing, nothing."""
    more = {"system|budget": 2000, f"{SUBSET}|metadata|train|tokens": 2000, f"{SUBSET}|metadata|train|flops": 1e10}
    (sentence,) = warnings([system("a"), ComparedSystem("b", [result(more)])])
    assert sentence == "budget of pretraining (tokens): a has 1,000, b has 2,000"
    for missing in (0, None):
        assert warnings([system("a"), ComparedSystem("b", [result({f"{SUBSET}|metadata|train|flops": missing})])]) == []


def test_encoders_that_were_trained_elsewhere() -> None:
    """Two models have unknown budgets both; one model that is read in two ways has one."""
    models = [{**ELSEWHERE, "system|settings": [{"key": "method.model", "value": name}]} for name in ("x", "y", "x")]
    first, second, same = (ComparedSystem(label, [result(model)]) for label, model in zip("abc", models, strict=True))
    unknown = "an unknown one (trained elsewhere)"
    assert warnings([first, second]) == [f"budget of pretraining: a has {unknown}, b has {unknown}"]
    assert warnings([first, same]) == []


def test_machines_of_all_seeds() -> None:
    """Each is named once, in the order of the alphabet; that a system's own seeds differ is said first."""
    other = result({f"{SUBSET}|metadata|train|hardware": "A100"}, seed=1)
    own, sentence, _ = warnings([ComparedSystem("a", [result({}), other]), system("b")])
    assert own.startswith("a averages results of unlike environments: hardware of training EPYC, AVX2 (seed ")
    assert sentence == "hardware of training: a has A100 and EPYC, AVX2, b has EPYC, AVX2"


def test_a_protocol_is_named_once_for_all_tasks() -> None:
    """Where it differs first; tasks that one of them lacks are not compared, and a subset's name follows its task's."""
    contents = [result({}), result({})]
    for content, k in zip(contents, (100, 10), strict=True):
        entry = content["tasks"]["mini/mrtydi/sw"][""]
        subsets = {"x": {**entry, "protocol": {"k": k}, "queries": k}}
        content["tasks"] |= {"mini/mrtydi/ko": subsets, "mini/mrtydi/te": subsets}
    contents[0]["tasks"]["mini/mrtydi/ar"] = {"": {**entry, "queries": 1}}
    assert warnings([ComparedSystem(label, [content]) for label, content in zip("ab", contents, strict=True)]) == [
        "protocol on mrtydi/ko/x (k): a has 100, b has 10",
        "judged queries of mrtydi/ko/x: a has 100, b has 10",
    ]


def test_settings_that_differ() -> None:
    """Settings of methods mean the same in two encoders and within a method; what a system lacks is no value of it."""
    rate, k1 = {"key": "method.learning_rate", "value": 0.1}, {"key": "method.k1", "value": 0.9}
    crop = {"system|method": "crop", "system|settings": [rate, {"key": "search.k", "value": 10}]}
    sparse = {"system|method": "bm25", "system|settings": [k1, {"key": "search.k", "value": 20}]}
    other = {"system|method": "msm", "system|settings": [{**rate, "value": 0.2}, {"key": "search.k", "value": 10}]}
    contents = {"crop": result(crop), "bm25": result(sparse), "msm": result(other)}
    contents["bm25 too"] = result({**sparse, "system|settings": [{"key": "search.k", "value": 20}]})
    for label in ("bm25", "bm25 too"):
        for key in ("encoder_config", "readout"):
            del contents[label]["system"][key]

    for content in contents.values():
        content["profile"] = "small"

    def differing(*labels: str) -> dict[str, tuple[str, bool]]:
        differences = setting_differences([ComparedSystem(label, [contents[label]]) for label in labels])
        rows = [difference.as_json() for difference in differences if difference.key.startswith(("method.", "search"))]
        return {row["key"]: (" ".join(row["values"].values()), row["relevant"]) for row in rows}

    assert differing("crop", "msm") == {"method.learning_rate": ("0.1 0.2", True)}
    assert differing("crop", "bm25") == {
        "method.learning_rate": ("0.1 —", False),
        "search.k": ("10 20", True),
        "method.k1": ("— 0.9", False),
    }
    assert differing("bm25", "bm25 too") == {"method.k1": ("0.9 —", True)}
    assert differing("crop", "msm", "bm25")["search.k"] == ("10 10 20", True)


def test_costs_are_means_over_seeds_in_the_house_order() -> None:
    """Tokens, FLOPs, steps; what is no number is left out, and so is what a seed lacks."""
    first, second = result({}), result({f"{SUBSET}|metadata|train|steps": 20}, seed=1)
    system = ComparedSystem("a", [first, second])
    assert system.costs() == {"tokens": 1000, "flops": 5e9, "steps": 60}
    assert list(system.costs()) == ["tokens", "flops", "steps"]
    del second["tasks"]["mini/mrtydi/sw"][""]["metadata"]["train"]["steps"]
    assert list(system.costs()) == ["tokens", "flops"]
    assert ComparedSystem("b", [result({f"{SUBSET}|metadata": {}})]).costs() == {}


def test_a_readout_is_held_against_the_other_as_it_was_on_the_same_task() -> None:
    """What a subset was read by precedes what the system says; each key is named once, an absent new one is as ever."""
    encoder_config = {**ENCODER_CONFIG, "layer": 8, "query_length": 512}
    changes = {f"{SUBSET}|resolved": encoder_config, "system|read_by": "protocol"}
    sentences = warnings(
        [
            ComparedSystem("a", [result({f"{SUBSET}|resolved": ENCODER_CONFIG})]),
            ComparedSystem("a+protocol", [result(changes)]),
        ]
    )
    assert sentences == [
        "readout (layer): a has none, a+protocol has 8",
        "readout (query_length): a has none, a+protocol has 512",
    ]
    with_mark = result({f"{SUBSET}|resolved": {**ENCODER_CONFIG, "question_mark": True}})
    dropped = result({f"{SUBSET}|resolved": {**ENCODER_CONFIG, "question_mark": False}})
    assert warnings([system("a"), ComparedSystem("b", [with_mark])]) == []
    assert warnings([system("a"), ComparedSystem("b", [dropped])]) == [
        "readout (question_mark): a has True, b has False"
    ]
    sparse = result({f"{SUBSET}|resolved": {"analyzer": "en"}})
    assert warnings([system("a"), ComparedSystem("b", [sparse]), system("c")]) == []


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({f"{SUBSET}|harness": "0.3.0"}, "retrieval-bench 0.2.0 (seed 0) and 0.3.0 (seed 1)"),
        ({f"{SUBSET}|libraries|torch": "2.9"}, "torch 2.8 (seed 0) and 2.9 (seed 1)"),
        ({f"{SUBSET}|compute|threads": 4}, "threads 2 (seed 0) and 4 (seed 1)"),
        ({f"{SUBSET}|compute|device": "cuda"}, "device cpu (seed 0) and cuda (seed 1)"),
        ({f"{SUBSET}|metadata|train|hardware": "H100"}, "hardware of training EPYC, AVX2 (seed 0) and H100 (seed 1)"),
    ],
)
def test_seeds_of_unlike_environments_are_one_sentence(changes: Mapping[str, Any], difference: str) -> None:
    """The hash is equal, so the seeds are averaged; what cannot be seen by the hash is said, and by whom."""

    def made(seed: int, **further: Any) -> dict[str, Any]:
        libraries, compute = {"torch": "2.8", "numpy": "2.0"}, {"device": "cpu", "threads": 2}
        environment = {"harness": "0.2.0", "libraries": libraries, "compute": compute}
        return result({**{f"{SUBSET}|{name}": value for name, value in environment.items()}, **further}, seed)

    expected = f"a averages results of unlike environments: {difference}"
    assert warnings([ComparedSystem("a", [made(0), made(1, **changes)])]) == [expected]
    assert warnings([ComparedSystem("a", [made(0), made(1)])]) == []


def test_tasks_of_unlike_environments_are_named_where_seeds_do_not_tell_them_apart() -> None:
    """What only one of two tasks has used is no difference; one sentence names all that differs."""
    content = result({f"{SUBSET}|libraries": {"torch": "2.8", "jieba": "0.42"}, f"{SUBSET}|compute": {"threads": 1}})
    (subset,) = content["tasks"]["mini/mrtydi/sw"].values()
    other = {**subset, "libraries": {"torch": "2.9"}, "compute": {"threads": 8}}
    for task in ("te", "fi", "ko", "ru"):
        content["tasks"][f"mini/mrtydi/{task}"] = {"": other}
    assert warnings([ComparedSystem("a", [content])]) == [
        (
            "a averages results of unlike environments: torch 2.8 (mrtydi/sw) and 2.9 (mrtydi/te, mrtydi/fi, "
            "mrtydi/ko and 1 more); threads 1 (mrtydi/sw) and 8 (mrtydi/te, mrtydi/fi, mrtydi/ko and 1 more)"
        )
    ]


def test_systems_without_passport_are_named() -> None:
    """One sentence for all of them, whose names are cut; those with one are not among them."""
    unsigned = {f"{SUBSET}|passport": None}
    assert warnings([system("a", **unsigned), system("b")]) == [
        "no passport: what a read is known by the keys of stages alone"
    ]
    sentence = warnings([system(name, **unsigned) for name in "abcde"])[0]
    assert sentence == "no passport: what a, b, c and 2 more read is known by the keys of stages alone"


def test_as_many_names_as_are_shown_are_not_counted() -> None:
    """Three are listed without a word on more."""
    unsigned = {f"{SUBSET}|passport": None}
    sentence = warnings([system(name, **unsigned) for name in "abc"])[0]
    assert sentence == "no passport: what a, b, c read is known by the keys of stages alone"
