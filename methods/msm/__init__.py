"""MSM: a sentence is predicted from those around it. Importing it imports no torch."""

from bench import LogUniform, Method, Uniform, hookimpl
from methods.msm.config import MsmConfig
from methods.msm.presets import PRESETS

MSM = Method(
    name="msm",
    version="1",
    summary="Each sentence is predicted from its document; the document's others and all others are its negatives.",
    citation=(
        "Shunyu Zhang, Yaobo Liang, Ming Gong, Daxin Jiang and Nan Duan. 2023. Modeling Sequential Sentence Relation "
        "to Improve Cross-lingual Dense Retrieval. ICLR 2023 (arXiv 2302.01626). Code: shunyuzh/MSM."
    ),
    config=MsmConfig,
    contract=MsmConfig.contract,
    trainer="methods.msm.trainer:MsmTrainer",
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets=PRESETS,
    space={"learning_rate": LogUniform(3e-4, 1e-2), "temperature": LogUniform(0.03, 0.3), "mu": Uniform(0.0, 1.0)},
    describe=__name__,
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return msm."""
    return [MSM]
