"""The loss of two pairs, worked out on paper."""

import math
from types import SimpleNamespace

import pytest
import torch
from bench_title_body import TitleBodyConfig
from bench_title_body.trainer import TitleBodyTrainer


@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_each_title_asks_for_its_body(temperature: float) -> None:
    """Cosines 0.6 and 0 of the first title, 0.8 and 1 of the second; bodies do not ask back, lengths do not matter."""
    titles, bodies = torch.tensor([[3.0, 0.0], [0.0, 1.0]]), torch.tensor([[0.6, 0.8], [0.0, 2.0]])
    encode = SimpleNamespace(encode_views=lambda _: (titles, bodies))
    loss, values = TitleBodyTrainer(TitleBodyConfig(temperature=temperature)).loss(encode, object())
    first, second = math.log1p(math.exp(-0.6 / temperature)), math.log1p(math.exp(-0.2 / temperature))
    assert float(loss.detach()) == pytest.approx((first + second) / 2, rel=1e-4)
    assert values()["accuracy"] == 1.0


def test_the_prompts_are_those_of_search() -> None:
    """What a training puts before titles and bodies is what the encoder reads before queries and passages."""
    encoder_config = TitleBodyConfig().encoder_config()
    assert (encoder_config.query_prompt, encoder_config.passage_prompt) == ("query: ", "passage: ")
    assert (encoder_config.pooling, encoder_config.similarity, encoder_config.normalise) == ("mean", "cos", True)
