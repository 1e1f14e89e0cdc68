"""Quick-Thoughts' loss."""

import torch

from bench.training import Similarity, similarities, to_device


def neighbours(n: int, m: int, *, context: int, documents: torch.Tensor | None = None, first: int = 0) -> torch.Tensor:
    """Return which sentences are neighbours.

    Args:
        n: sentences whose neighbours are returned.
        m: consecutive sentences, among which those n are.
        context: places that a neighbour is away at most.
        documents: number of each sentence's document, `[m]`, on the processor; default: all are of one.
        first: place of the first of the n sentences.

    Returns:
        bool `[n, m]`; a sentence is not its own neighbour.
    """
    rows, columns = torch.arange(first, first + n)[:, None], torch.arange(m)[None]
    near = ((rows - columns).abs() <= context) & (rows != columns)
    return near if documents is None else near & (documents[rows] == documents[columns])


def scores_of(
    f: torch.Tensor, g: torch.Tensor, *, first: int, temperature: float, similarity: Similarity
) -> torch.Tensor:
    """Return `s_ij` of `quickthought`, `[n, m]`: 0 where j is i itself; arguments are those there."""
    scores = similarities(f, g, similarity) / temperature
    return scores.scatter(1, torch.arange(first, first + len(f), device=scores.device)[:, None], 0.0)


def quickthought(
    f: torch.Tensor,
    g: torch.Tensor,
    *,
    context: int = 1,
    documents: torch.Tensor | None = None,
    first: int = 0,
    temperature: float = 1.0,
    similarity: Similarity = "dot",
) -> torch.Tensor:
    """Return the loss of each sentence's neighbours among all sentences.

    `L = −1/n Σ_i Σ_j t_ij log softmax_j(s_ij)`, `s_ij = f_i · g_j / τ`, but `s_ii = 0`; `t_i` is uniform over the
    neighbours of i. The sentence itself keeps its place among the candidates, with the score 0, as in the public code.

    Args:
        f: vectors of consecutive sentences, `[n, d]`.
        g: the other encoder's vectors of all sentences, `[m, d]`.
        context: as in `neighbours`.
        documents: as in `neighbours`, `[m]`, on the processor.
        first: place of f's first sentence in g.
        temperature: τ.
        similarity: `dot` or `cos`.

    Returns:
        A scalar.

    Raises:
        ValueError: a sentence has no neighbour.

    Source: Logeswaran and Lee 2018, section 3, as lajanugen/S2V computes it.
    """
    scores = scores_of(f, g, first=first, temperature=temperature, similarity=similarity)  # [n, m]
    near = neighbours(*scores.shape, context=context, documents=documents, first=first)
    if not bool(near.any(1).all()):
        raise ValueError("found a sentence without a neighbour, expected at least two consecutive ones of a document")
    near = to_device(near, scores.device)
    counts = near.sum(1, keepdim=True)
    return -((near / counts) * scores.log_softmax(1)).sum(1).mean()
