"""CCP: a sentence predicts its context, against others of its language. Importing it imports no torch."""

from bench import Choice, LogUniform, Method, hookimpl
from methods.ccp.config import CcpConfig
from methods.ccp.presets import PRESETS

CCP = Method(
    name="ccp",
    version="1",
    summary="A sentence must find its neighbour among all sentences of its language, in the batch and in a bank.",
    citation=(
        "Ning Wu, Yaobo Liang, Houxing Ren, Linjun Shou, Nan Duan, Ming Gong and Daxin Jiang. 2022. Unsupervised "
        "Context Aware Sentence Representation Pretraining for Multi-lingual Dense Retrieval. IJCAI 2022 "
        "(arXiv 2206.03281)."
    ),
    config=CcpConfig,
    contract=CcpConfig.contract,
    trainer="methods.ccp.trainer:CcpTrainer",
    libraries=("numpy", "safetensors", "torch", "transformers"),
    presets=PRESETS,
    space={
        "learning_rate": LogUniform(3e-4, 5e-3),
        "temperature": LogUniform(0.02, 0.5),
        "window": Choice((2, 3, 5)),
        "bank.capacity": Choice((512, 2048, 8192, 32768)),
        "mlm.probability": Choice((0.0, 0.25, 0.5)),
    },
    describe=__name__,
)


@hookimpl
def bench_methods() -> list[Method]:
    """Return CCP."""
    return [CCP]
