"""Results as a model's repository on the Hub holds them: `.eval_results/*.yaml`, percent, under mteb's ids of tasks."""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from bench.core.installed import DISTRIBUTION, version_of
from bench.evaluation.results.marks import marks

_MEASURES = {
    "nDCG": "ndcg",
    "RR": "mrr",
    "R": "recall",
    "Rcap": "recall_cap",
    "AP": "map",
    "P": "precision",
    "answer-R": "answer_recall",
}
"""Ours → mteb's, before the cut."""
MTEB: dict[str, Sequence[str]] = json.loads(files("bench").joinpath("evaluation/mteb.json").read_bytes())
"""`TASK` or `TASK:SUBSET` → the same queries and documents in mteb: task, hf_subset, split, main measure.

Where that measure is one of ours, also the data set of the Hub."""


def eval_results(content: Mapping[str, Any]) -> tuple[dict[str, bytes], list[str]]:
    """Return what an encoder's result says in `.eval_results/`, a file each data set, and the subsets left out.

    Left out is what the Hub has no data set for, and every subset of a substitute, or of a row that is more than its
    encoder (fused, re-ranked, post-processed). Data that are not official give nothing.
    """
    import yaml
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    system, suite = content["system"], content["suite"]
    is_not_plain = suite.get("proxy_for") or any(system.get(part) for part in ("parts", "rerank", "post"))
    files, excluded = {}, []
    for task, subsets in content["tasks"].items() if content["data"] == "official" else ():
        for subset, scored in subsets.items():
            values = {measure_name(measure): value for measure, value in scored["measures"].items()}
            entry_of = MTEB.get(f"{task}:{subset}" if subset else task, ())
            if is_not_plain or len(entry_of) < 5 or entry_of[3] not in values:
                excluded.append(f"{task} {subset}".strip())
                continue
            name, hf_subset, split, main, dataset = entry_of
            notes = f"{main}, {content['regime']}, seed {content['seed']}; {DISTRIBUTION} {version_of(DISTRIBUTION)}"
            notes = "; ".join((notes, *marks(content)))
            value = round(100 * values[main], 5)
            entry = EvalResultEntry(dataset_id=dataset, task_id=f"{name}_{hf_subset}_{split}", value=value, notes=notes)
            text = yaml.safe_dump(eval_result_entries_to_yaml([entry]), sort_keys=False)
            files[f".eval_results/{name}.yaml"] = text.encode()
    return files, excluded


def measure_name(measure: str) -> str:
    """Our name of a measure as mteb spells it: `nDCG@10` → `ndcg_at_10`, `R@2kt` → `recall_at_2kt`."""
    name, _, cut = measure.partition("@")
    spelt = _MEASURES.get(name) or re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return f"{spelt}_at_{cut}" if cut else spelt
