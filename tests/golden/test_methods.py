"""Every golden case of the methods, through the functions that the trainers call, in float64 and float32.

A case is known by the names of its fields, so that further files of the same format are tested as well: all `*.json`
under `$BENCH_GOLDEN_EXTRA/methods`. A case with a field that nothing reads is refused: it asks for more than is tested.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

from bench.retrieval.post_processing import Affine, mean, spread
from bench.retrieval.rotation import csls, orthogonalised, procrustes
from bench.training.banks import Ring, TaggedBank, follow
from bench.training.heads import Projection
from bench.training.losses import info_nce, paired_info_nce, similarities, xtreme_r
from bench.training.mlm import MlmHead, MlmReduction, masked_prediction
from bench.training.optimisation import warm_up_and_decay
from bench.training.views import crop_length
from methods.auto_mlm.loss import additive_margin, hinge, together
from methods.bm25.lucene import build
from methods.ccp.head import ViewsHead
from methods.ccp.loss import ccp_loss
from methods.contriever.loss import moco_logits, normed, own_first
from methods.ict.views import cloze
from methods.msm.loss import gap, hierarchical_nce, msm_loss, relations
from methods.quickthought.loss import quickthought

Case = Mapping[str, Any]
Run = Callable[[Case, torch.dtype], None]
FOLDER = Path(__file__).parent / "methods"
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}

NOTES = ("name", "note", "grad_note", "tolerance", "kind")
"""Fields about a case: its name, remarks, the file's own tolerance (ours are narrower), and which kind it is."""

RUNS: list[tuple[frozenset[str], str | None, Run]] = []


def runs(*fields: str, kind: str | None = None) -> Callable[[Run], Run]:
    """Register what runs a case that has these fields, and this `kind` if one is given."""

    def register(run: Run) -> Run:
        RUNS.append((frozenset(fields), kind, run))
        return run

    return register


def files() -> Iterator[Path]:
    """Yield our golden files, and those of the environment."""
    yield from sorted(FOLDER.glob("*.json"))
    if extra := os.environ.get("BENCH_GOLDEN_EXTRA"):
        yield from sorted((Path(extra) / "methods").glob("*.json"))


def cases() -> list[Any]:
    """Every case of every file; a file without cases would test nothing."""
    parameters = []
    for path in files():
        read = json.loads(path.read_text(encoding="utf-8"))["cases"]
        assert read, path
        parameters += [pytest.param(case, id=f"{path.stem}-{case['name']}") for case in read]
    return parameters


class Reading(Mapping[str, Any]):
    """A case that remembers which of its fields were read."""

    def __init__(self, case: Case) -> None:
        self._case, self.read = case, set(NOTES)

    def __getitem__(self, name: str) -> Any:
        """Return a field."""
        self.read.add(name)
        return self._case[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the fields."""
        return iter(self._case)

    def __len__(self) -> int:
        """Return the number of fields."""
        return len(self._case)


def checked(case: Case, dtype: torch.dtype) -> None:
    """Run a case; fail where a field of it was not read."""
    reading = Reading(case)
    run_of(case)(reading, dtype)
    assert not set(case) - reading.read, f"fields that no test reads: {sorted(set(case) - reading.read)}"


def run_of(case: Case) -> Run:
    """Find what runs a case: the most fields win."""
    fitting = [
        (len(fields), run)
        for fields, kind, run in RUNS
        if fields <= set(case) and (kind is None or case.get("kind") == kind)
    ]
    assert fitting, f"no function for a case with the fields {sorted(case)}"
    return max(fitting, key=lambda fit: fit[0])[1]


def close(actual: torch.Tensor | float, expected: Any, dtype: torch.dtype) -> None:
    """Hold values against the golden ones: 1e-9, in float32 1e-5 absolute and relative."""
    bound = TOLERANCE[dtype]
    actual_values = torch.as_tensor(actual, dtype=torch.float64).detach()
    relative = bound if dtype == torch.float32 else 0.0
    torch.testing.assert_close(actual_values, torch.as_tensor(expected, dtype=torch.float64), atol=bound, rtol=relative)


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize("case", cases())
def test_golden(case: dict[str, Any], dtype: torch.dtype) -> None:
    """The value that two independent computations gave."""
    checked(case, dtype)


def test_a_field_that_is_not_read_is_refused() -> None:
    """Of a case, and of its head; else a file would seem to be tested that asks for more."""
    (plain,) = (case.values[0] for case in cases() if case.id == "automlm-head_three_tokens")
    with pytest.raises(AssertionError, match=r"no test reads: \['label_smoothing'\]"):
        checked({**plain, "label_smoothing": 0.1}, torch.float64)
    with pytest.raises(AssertionError, match="activation"):
        checked({**plain, "head": {**plain["head"], "activation": "relu"}}, torch.float64)


@runs("q", "k", "tau", "positives", "norm_query", "norm_doc")
def in_batch(case: Case, dtype: torch.dtype) -> None:
    """ICT, Contriever in batch, DPR with hard negatives and gathered ranks."""
    queries, keys = torch.tensor(case["q"], dtype=dtype), torch.tensor(case["k"], dtype=dtype)
    loss = info_nce(
        normed(queries, case["norm_query"]),
        normed(keys, case["norm_doc"]),
        torch.tensor(case["positives"]),
        temperature=case["tau"],
        label_smoothing=case["label_smoothing"],
    )
    assert loss.dtype == dtype
    close(loss, case["expected"], dtype)


@runs("q_pooled", "a_pooled", "logit_scale")
def dual_encoder(case: Case, dtype: torch.dtype) -> None:
    """XTREME-R's dual encoder: cosine of pooled vectors times the scale."""
    queries, passages = (torch.tensor(case[name], dtype=dtype) for name in ("q_pooled", "a_pooled"))
    loss = xtreme_r(queries, passages, torch.tensor(case["logit_scale"], dtype=dtype))
    assert loss.dtype == dtype
    close(loss, case["expected"], dtype)


@runs("spans")
def spans(case: Case, dtype: torch.dtype) -> None:
    """CoCondenser's loss over rows of which two and two belong together."""
    close(paired_info_nce(torch.tensor(case["spans"], dtype=dtype)), case["expected"], dtype)


@runs("step", "warmup", "total", "base_lr", kind="schedule")
def schedule(case: Case, dtype: torch.dtype) -> None:
    assert case["ratio"] == 0, "ours falls to 0, the reference to a share of the peak"
    close(case["base_lr"] * warm_up_and_decay(case["step"], case["warmup"], case["total"]), case["expected"], dtype)


@runs("q", "k", "queue", "tau", "norm_query", "norm_doc", kind="loss")
def momentum_contrast(case: Case, dtype: torch.dtype) -> None:
    """MoCo's loss: own key first, then the queue as it is stored."""
    queries, keys, queue = (torch.tensor(case[name], dtype=dtype) for name in ("q", "k", "queue"))
    queries, keys = normed(queries, case["norm_query"]), normed(keys, case["norm_doc"])
    loss = own_first(moco_logits(queries, keys, queue, temperature=case["tau"]), case["label_smoothing"])
    assert loss.dtype == dtype
    close(loss, case["expected"], dtype)


@runs("theta_k", "theta_q", "momentum", kind="momentum")
def momentum(case: Case, dtype: torch.dtype) -> None:
    """A slow copy after some steps of following."""
    slow, fast = (torch.nn.ParameterList([torch.tensor(case[name], dtype=dtype)]) for name in ("theta_k", "theta_q"))
    for _ in range(case.get("steps", 1)):
        follow(slow, fast, case["momentum"])
    close(slow[0], case["expected"], dtype)


@runs("queue0", "ptr0", "steps", kind="queue")
def queue(case: Case, dtype: torch.dtype) -> None:
    """A ring of rows, overwritten from the oldest on."""
    slots = torch.tensor(case["queue0"], dtype=dtype)
    ring = Ring(*slots.shape).to(dtype)
    ring.rows.copy_(slots)
    ring.pointer.fill_(case["ptr0"])
    for step in case["steps"]:
        ring.push(torch.tensor(step["keys"], dtype=dtype))
        close(ring.rows, step["queue_after"], dtype)
        assert int(ring.pointer) == step["ptr_after"]


@runs("n", "ratio", "start", kind="crop")
def crop(case: Case, dtype: torch.dtype) -> None:
    """How long a crop is, and where its ends are then."""
    length, start = crop_length(case["n"], case["ratio"]), case["start"]
    assert length == case["expected_len"]
    ends = (start, start + length - 1) if length else (None, None)
    assert ends == (case["expected_first"], case["expected_last"])


@runs("tokens", "sentence_starts", "query_index", "remove", kind="ict")
def inverse_cloze(case: Case, dtype: torch.dtype) -> None:
    """A sentence and its block, with it or without; the title stays as it is."""
    pair = cloze(np.array(case["tokens"]), case["sentence_starts"], case["query_index"], remove=case["remove"])
    title = case["title"]
    actual = None if pair is None else {"query": pair[0].tolist(), "title": title, "block": pair[1].tolist()}
    assert actual == case["expected"]


@runs("q", "k", "docs", "tau", "mu", "mode", "valid")
def msm(case: Case, dtype: torch.dtype) -> None:
    """MSM's loss, its bias and, where given, the gradient that only a detached bias has."""
    q, k = (torch.tensor(case[name], dtype=dtype) for name in "qk")
    documents = torch.tensor(case["docs"])
    valid = None if case["valid"] is None else torch.tensor(case["valid"], dtype=torch.bool)
    arguments: dict[str, Any] = {"temperature": case["tau"], "mu": case["mu"], "mode": case["mode"], "valid": valid}
    close(msm_loss(q, k, documents, **arguments), case["expected"], dtype)
    close(msm_loss(q, k, documents, **arguments, reduction="none"), case["per_query"], dtype)
    is_valid = torch.ones(len(q), dtype=torch.bool) if valid is None else valid
    logits = (similarities(q[is_valid], k[is_valid], "cos") / case["tau"]).requires_grad_()
    positives = torch.arange(len(logits))
    near, far = relations(documents[is_valid], documents[is_valid], positives)
    close(gap(logits, near, far), case["alpha_logit_units"], dtype)
    if "grad_wrt_logits_alpha_detached" in case:
        hierarchical_nce(logits, positives, near, far, mu=case["mu"], mode=case["mode"]).mean().backward()
        assert logits.grad is not None
        close(logits.grad, case["grad_wrt_logits_alpha_detached"], dtype)
        wrong = torch.tensor(case["grad_wrt_logits_if_not_detached_finite_difference"], dtype=dtype)
        assert not torch.allclose(logits.grad, wrong, atol=1e-3)


@runs("a", "u", "margin", "sign", kind="contrastive")
def auto_mlm_contrast(case: Case, dtype: torch.dtype) -> None:
    """Auto-MLM, eq. 6, with either sign of the margin."""
    a, u = torch.tensor(case["a"], dtype=dtype), torch.tensor(case["u"], dtype=dtype)
    loss, _ = hinge(a, u, margin=case["margin"], sign=case["sign"])
    assert loss.dtype == dtype
    close(loss, case["expected"], dtype)


@runs("h_masked", "sentence_vectors", "sentence_of", "targets", "decoder_weight", "decoder_bias", "head", kind="mlm")
def auto_mlm_prediction(case: Case, dtype: torch.dtype) -> None:
    """Auto-MLM, eq. 7, in both reductions and token by token; with a head, dense → gelu → LayerNorm, or without."""
    head = None
    if case["head"] is not None:
        weights = dict(case["head"])
        head = MlmHead(len(case["h_masked"][0]), len(case["decoder_bias"]), weights.pop("eps")).to(dtype)
        assert set(weights) == {"dense_weight", "dense_bias", "norm_weight", "norm_bias"}, (
            f"no head of ours: {set(weights)}"
        )
        state = {name.replace("_", "."): torch.tensor(value, dtype=dtype) for name, value in weights.items()}
        head.load_state_dict({**state, "bias": torch.tensor(case["decoder_bias"], dtype=dtype)})
        head.requires_grad_(requires_grad=False)
    names = ("h_masked", "decoder_weight", "decoder_bias", "sentence_vectors")
    rows, decoder, bias, vectors = (torch.tensor(case[name], dtype=dtype) for name in names)
    targets, sentence = torch.tensor(case["targets"]), torch.tensor(case["sentence_of"])
    ways: dict[MlmReduction, float] = {
        "token_mean": case["expected_token_mean"],
        "sentence_sum": case["expected_sentence_sum_mean"],
    }
    for reduction, expected in ways.items():
        loss = masked_prediction(
            rows, targets, decoder, bias, head=head, vectors=vectors, sentence=sentence, reduction=reduction
        )
        assert loss.dtype == dtype
        close(loss, expected, dtype)
    for at, expected in enumerate(case["per_token"]):
        token = slice(at, at + 1)
        loss = masked_prediction(
            rows[token], targets[token], decoder, bias, head=head, vectors=vectors, sentence=sentence[token]
        )
        close(loss, expected, dtype)


@runs("ctl", "automlm", "lam", kind="total")
def auto_mlm_total(case: Case, dtype: torch.dtype) -> None:
    """Auto-MLM, eq. 8."""
    ctl, automlm = torch.tensor(case["ctl"], dtype=dtype), torch.tensor(case["automlm"], dtype=dtype)
    close(together(ctl, automlm, case["lam"]), case["expected"], dtype)


@runs("x", "y", "margin", "scale")
def labse(case: Case, dtype: torch.dtype) -> None:
    """LaBSE's additive margin softmax, both directions added."""
    x, y = torch.tensor(case["x"], dtype=dtype), torch.tensor(case["y"], dtype=dtype)
    close(additive_margin(x, y, margin=case["margin"], scale=case["scale"]), case["expected"], dtype)


@runs("f", "g", "context")
def quick_thoughts(case: Case, dtype: torch.dtype) -> None:
    """Quick-Thoughts as its public code computes it."""
    f, g = torch.tensor(case["f"], dtype=dtype), torch.tensor(case["g"], dtype=dtype)
    close(quickthought(f, g, context=case["context"]), case["expected"], dtype)


@runs("z", "windows", "languages", "tau", "bank", "bank_languages")
def context_prediction(case: Case, dtype: torch.dtype) -> None:
    """CCP: every term, their sum, their mean."""
    codes = sorted({*case["languages"], *case["bank_languages"]})
    width = len(case["z"][0])
    for reduction in ("mean", "sum"):
        result = ccp_loss(
            torch.tensor(case["z"], dtype=dtype),
            torch.tensor(case["windows"]),
            torch.tensor([codes.index(code) for code in case["languages"]]),
            temperature=case["tau"],
            bank=torch.tensor(case["bank"], dtype=dtype).reshape(-1, width),
            bank_languages=torch.tensor([codes.index(code) for code in case["bank_languages"]], dtype=torch.int64),
            l2_norm=case["l2_norm"],
            inbatch_cross_language=case["inbatch_cross_language"],
            bank_language_specific=case["bank_language_specific"],
            reduction="mean" if reduction == "mean" else "sum",
        )
        assert len(result.terms) == case["n_terms"]
        close(result.terms, case["terms"], dtype)
        close(result.loss, case[f"expected_{reduction}"], dtype)


@runs("layout", "capacity", "steps")
def language_bank(case: Case, dtype: torch.dtype) -> None:
    """CCP's bank: what each language sees before and after each push, and the order of one ring."""
    codes = sorted({step["lang"] for step in case["steps"]})
    bank = TaggedBank(case["capacity"], len(case["steps"][0]["rows"][0]), len(codes), case["layout"]).to(dtype)

    def check_bank(expected: Mapping[str, Any]) -> None:
        for language, rows in expected.items():
            stored, tags = bank.ordered(torch.tensor([codes.index(language)]))
            assert tags.tolist() == [codes.index(language)] * len(rows)
            close(stored.flatten(), [value for row in rows for value in row], dtype)

    for step in case["steps"]:
        check_bank(step.get("visible_before", {}))
        rows = torch.tensor(step["rows"], dtype=dtype)
        bank.push(rows, torch.full((len(rows),), codes.index(step["lang"])))
        check_bank(step["visible_after"])
        if "bank_after" in step:
            stored, tags = bank.ordered()
            assert [codes[tag] for tag in tags.tolist()] == [row["lang"] for row in step["bank_after"]]
            close(stored, [row["row"] for row in step["bank_after"]], dtype)


@runs("order", "params", "steps", "momentum")
def asymmetric_normalisation(case: Case, dtype: torch.dtype) -> None:
    """CCP's head over batches in turns: projections of both views, statistics before and after."""
    parameters = {name: torch.tensor(value, dtype=dtype) for name, value in case["params"].items()}
    project = Projection(len(parameters["b1"]), len(parameters["b2"]), eps=case["eps"]).to(dtype)
    assert project.norm is not None
    assert project.norm.momentum == case["momentum"]
    names = {"first.weight": "w1", "first.bias": "b1", "norm.weight": "gamma", "norm.bias": "beta"}
    names |= {"second.weight": "w2", "second.bias": "b2"}
    weights = dict(project.named_parameters())
    assert set(weights) == set(names)
    with torch.no_grad():
        for name, key in names.items():
            weights[name].copy_(parameters[key])
    head = ViewsHead(project, "asym", case["order"])
    for step in case["steps"]:
        assert int(head.turn) == step["e"]
        close(project.norm.running_mean, step["running_mean_before"], dtype)
        close(project.norm.running_var, step["running_var_before"], dtype)
        views = (torch.tensor(step[name], dtype=dtype) for name in ("h_c", "h_i"))
        for projected, key in zip(head(*views), ("z_c", "z_i"), strict=True):
            close(projected, step[key], dtype)
        close(project.norm.running_mean, step["running_mean_after"], dtype)
        close(project.norm.running_var, step["running_var_after"], dtype)


@runs("x", "mean", "std", "var", kind="shift_scale")
def shift_and_scale(case: Case, dtype: torch.dtype) -> None:
    """Calibration: statistics of the population, and what they make of the sample."""
    vectors = np.array(case["x"], dtype=str(dtype).removeprefix("torch."))
    close(torch.from_numpy(mean(vectors)), case["mean"], dtype)
    close(torch.from_numpy(Affine(mean(vectors))(vectors)), case["shifted"], dtype)
    by: Literal["std", "var"]
    for by in ("std", "var"):
        close(torch.from_numpy(spread(vectors, by)), case[by], dtype)
        close(torch.from_numpy(Affine(mean(vectors), spread(vectors, by))(vectors)), case[f"scaled_{by}"], dtype)


@runs("source", "target", kind="procrustes")
def rotating(case: Case, dtype: torch.dtype) -> None:
    """Calibration: the orthogonal map, and that it maps."""
    source, target = (torch.tensor(case[name], dtype=dtype) for name in ("source", "target"))
    rotation = procrustes(source, target)
    close(rotation, case["expected_W"], dtype)
    close(source @ rotation.T.to(dtype), case["target"], dtype)


@runs("source", "target", "k", kind="csls")
def scaled_similarity(case: Case, dtype: torch.dtype) -> None:
    """Calibration: every score of CSLS."""
    source, target = (torch.tensor(case[name], dtype=dtype) for name in ("source", "target"))
    close(csls(source, target, case["k"]), case["expected"], dtype)


@runs("W", "beta", kind="orthogonalise")
def orthogonal_step(case: Case, dtype: torch.dtype) -> None:
    """Calibration: one step towards an orthogonal matrix."""
    close(orthogonalised(torch.tensor(case["W"], dtype=dtype), case["beta"]), case["expected"], dtype)


@runs("query", "docs", "k1", "b")
def lucene(case: Case, dtype: torch.dtype) -> None:
    """BM25 as Lucene has it, the scores of every document."""
    terms = sorted({term for document in [*case["docs"], case["query"]] for term in document})
    documents = [[terms.index(term) for term in document] for document in case["docs"]]
    query = [terms.index(term) for term in case["query"]]
    precision: Literal["float32", "float64"] = "float64" if dtype == torch.float64 else "float32"
    index = build(documents, len(terms), k1=case["k1"], b=case["b"], dtype=precision)
    close(torch.as_tensor(index.scores(query)), case["expected"], dtype)
