"""Chance and threads are set for a training and put back after it."""

import json
import random

import numpy as np
import pytest
import torch

from bench.core.encoder_config import TrainingJob
from bench.training.determinism import reproducible, rng_state, seed_everything, set_rng_state

CPU = torch.device("cpu")


def draws() -> list[float]:
    return [float(torch.rand(())), float(np.random.rand()), random.random()]


def test_everything_is_put_back() -> None:
    """Also after an error: generators, threads, deterministic algorithms."""
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    fill = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]  # torch does not type it
    before, inside = rng_state(CPU), []

    def fail() -> None:
        with reproducible(TrainingJob(1, 5, "cpu", threads + 1)):
            inside.append((torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()))
            draws()
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert inside == [(threads + 1, True)]
    assert rng_state(CPU) == before
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == (threads, strict)
    assert torch.utils.deterministic.fill_uninitialized_memory == fill  # type: ignore[attr-defined]  # as above


def test_the_seed_decides_and_chance_survives_json() -> None:
    """The same seed gives the same numbers, another others; generators go on where they were, half a pair included."""
    numbers = []
    for seed in (1, 1, 2):
        with reproducible(TrainingJob(1, seed, "cpu", 1)):
            numbers.append(draws())
    assert numbers[0] == numbers[1]
    assert all(a != b for a, b in zip(numbers[0], numbers[2], strict=True))
    with reproducible(TrainingJob(1, 3, "cpu", 1)):
        np.random.randn()
        random.gauss(0, 1)
        state = json.loads(json.dumps(rng_state(CPU)))
        follow = [np.random.randn(), random.gauss(0, 1), *draws()]
        seed_everything(9)
        set_rng_state(state, CPU)
        assert [np.random.randn(), random.gauss(0, 1), *draws()] == follow
