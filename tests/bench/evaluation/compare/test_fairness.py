"""Fairness: every difference in what systems were given is a sentence with both values; none where there is none."""

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from bench.evaluation.compare.fairness import ComparedSystem, warnings

CORPUS = {"name": "mini", "digest": {"reader": "mini/1", "files": []}}
CONTRACT = {"pooling": "mean", "layer": None, "query_prompt": "", "similarity": "cos"}
TUNING = {"trials": 8, "rule": "highest", "split": "dev", "suite": "mrtydi", "data": "mini", "seed": 0}


def result(changes: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
    """A result file's content; `changes` by dotted path, e.g. `system.budget`."""
    training = {"tokens": 1000, "flops": 5e9, "steps": 10, "finite": True, "hardware": "EPYC, AVX2"}
    leg = {"measures": {"RR@100": 0.5}, "queries": 60, "protocol": {"k": 100, "tie": "trec"}}
    precision = {"key": "method.precision", "value": "float32"}
    start = {"corpus": CORPUS, "backbone": "scratch:2x128", "contract": CONTRACT}
    suite = {"name": "mrtydi", "version": "1"}
    metadata = {"suite": suite, "setting": "unsupervised", "data": "mini", "seed": seed}
    system = {"deterministic": False, "budget": 1000, **start, "readout": {}, "settings": [precision]}
    content: dict[str, Any] = copy.deepcopy(
        {"system": system, **metadata, "tasks": {"mini/mrtydi/sw": {"": {**leg, "facts": {"train": training}}}}}
    )
    for path, value in changes.items():
        node = content
        *parts, last = path.split("|")
        for part in parts:
            node = node[part]
        node[last] = value
    return content


BFLOAT16 = {"key": "method.precision", "value": "bfloat16"}
LEG = "tasks|mini/mrtydi/sw|"
ELSEWHERE = {"system|budget": None, "system|deterministic": True, "system|method": "pretrained"}


def system(label: str, **changes: Any) -> ComparedSystem:
    return ComparedSystem(label, [result({path.replace("__", "|"): value for path, value in changes.items()})])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"system|budget": 2_000_000}, "budget of pretraining (tokens): a has 1,000, b has 2,000,000"),
        ({"system|corpus": {"name": "wiki"}}, "pretraining corpus: a has mini, b has wiki"),
        (
            {"system|corpus|digest": "other"},
            "pretraining corpus: a has mini, b has mini (the same name, with other documents)",
        ),
        ({"system|backbone": "xlm-r"}, "backbone: a has scratch:2x128, b has xlm-r"),
        ({"system|settings": [BFLOAT16]}, "precision of training: a has float32, b has bfloat16"),
        ({f"{LEG}|facts|train|hardware": "H100"}, "hardware of training: a has EPYC, AVX2, b has H100"),
        ({f"{LEG}|facts|train|tokens": 1300}, "tokens really seen in pretraining: a has 1,000, b has 1,300"),
        ({f"{LEG}|facts|train|flops": 9e9}, "FLOPs of pretraining: a has 5e+09, b has 9e+09"),
        ({"system|tuning": TUNING}, "trials of tuning: a has none, b has 8"),
        ({"system|readout": {"query_prompt": "query: "}}, "readout (query_prompt): a has empty, b has query: "),
        ({"system|contract": CONTRACT | {"pooling": "cls"}}, "readout (pooling): a has mean, b has cls"),
        ({"suite|version": "2"}, "version of the suite: a has 1, b has 2"),
        ({f"{LEG}|protocol|k": 10}, "protocol on mrtydi/sw (k): a has 100, b has 10"),
        ({f"{LEG}|queries": 59}, "judged queries of mrtydi/sw: a has 60, b has 59"),
        ({"seed": 3}, "seeds: a has 0, b has 3"),
        (ELSEWHERE, "budget of pretraining: a has 1,000, b has an unknown one (trained elsewhere)"),
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
    ],
)
def test_tunings_are_compared(changes: Mapping[str, Any], sentences: list[str]) -> None:
    """Trials, rule, part; settings chosen on another suite are not the same help."""
    first, second = system("a", system__tuning=TUNING), system("b", system__tuning={**TUNING, **changes})
    assert warnings([first, second]) == sentences


def test_what_is_no_difference() -> None:
    """The last step overshoots by up to 2 %; `crop@init` has budget 0 by its nature, BM25 has none and one seed."""
    assert not warnings([system("a"), ComparedSystem("b", [result({f"{LEG}|facts|train|hardware": None})])]), (
        "an older result"
    )
    for tokens, differs in ((1019, False), (1025, True)):
        changed = ComparedSystem("b", [result({f"{LEG}|facts|train|tokens": tokens})])
        assert bool(warnings([system("a"), changed])) is differs
    start = system("crop@init", system__budget=0)
    sparse = ComparedSystem("bm25", [result({"seed": 5})])
    for key in ("budget", "corpus", "backbone", "contract", "readout"):
        del sparse.contents[0]["system"][key]
    sparse.contents[0]["system"]["deterministic"] = True
    assert warnings([system("crop"), start, sparse]) == []
    assert warnings([system("crop", system__tuning=TUNING), start]) == []


def test_costs_are_means_over_seeds_in_the_house_order() -> None:
    """Tokens, FLOPs, steps; what is no number is left out, and so is what a seed lacks."""
    first, second = result({}), result({f"{LEG}|facts|train|steps": 20}, seed=1)
    system = ComparedSystem("a", [first, second])
    assert system.costs() == {"tokens": 1000, "flops": 5e9, "steps": 15}
    assert list(system.costs()) == ["tokens", "flops", "steps"]
    del second["tasks"]["mini/mrtydi/sw"][""]["facts"]["train"]["steps"]
    assert list(system.costs()) == ["tokens", "flops"]
    assert ComparedSystem("b", [result({f"{LEG}|facts": {}})]).costs() == {}


def test_a_readout_is_held_against_the_other_as_it_was_on_the_same_task() -> None:
    """What a leg was read by precedes what the system says; each key is named once, an absent new one is as ever."""
    contract = {**CONTRACT, "layer": 8, "query_length": 512}
    changes = {f"{LEG}|resolved": contract, "system|read_by": "protocol"}
    sentences = warnings(
        [ComparedSystem("a", [result({f"{LEG}|resolved": CONTRACT})]), ComparedSystem("a+protocol", [result(changes)])]
    )
    assert sentences == [
        "readout (layer): a has none, a+protocol has 8",
        "readout (query_length): a has none, a+protocol has 512",
    ]
    with_mark = result({f"{LEG}|resolved": {**CONTRACT, "question_mark": True}})
    dropped = result({f"{LEG}|resolved": {**CONTRACT, "question_mark": False}})
    assert warnings([system("a"), ComparedSystem("b", [with_mark])]) == []
    assert warnings([system("a"), ComparedSystem("b", [dropped])]) == [
        "readout (question_mark): a has True, b has False"
    ]
    sparse = result({f"{LEG}|resolved": {"analyzer": "en"}})
    assert warnings([system("a"), ComparedSystem("b", [sparse]), system("c")]) == []
