"""How protocols turn texts into vectors, where several suites do it alike: DPR's way, Contriever's and XTREME's two."""

from dataclasses import replace

from bench.suites import SEPARATOR, Readout

DPR = Readout(
    "DPR (EMNLP'20) and its code: first token of the last layer, inner product, 256 tokens, title and text as a pair",
    pooling="cls",
    layer=-1,
    normalise=False,
    similarity="dot",
    lengths=(256, 256),
    title=f" {SEPARATOR} ",
)
DPR_QUESTIONS = replace(DPR, source=f"{DPR.source}, questions without their question mark", question_mark=False)
CCP = replace(DPR, source=DPR.source.replace("DPR (EMNLP'20) and its code", "CCP (IJCAI'22), with DPR's code"))
CONTRIEVER = Readout(
    "Contriever (TMLR'22) and its code: mean over the last layer, dot product, 512 tokens; title, a blank, text",
    pooling="mean",
    layer=-1,
    normalise=False,
    similarity="dot",
    lengths=(512, 512),
    title=" ",
)
XTREME = Readout(
    "XTREME's script, as CCP (IJCAI'22) uses it: mean over all tokens of block 8 of 12 (index 7), 14 of 24 (index 13), "
    "512 tokens, cosine; other depths, ours: the same share of the blocks",
    pooling="mean",
    layers={12: 8, 24: 14},
    similarity="cos",
    lengths=(512, 512),
)
XTREME_R = Readout(
    "XTREME-R's baseline: first token of the last layer, unit length", pooling="cls", layer=-1, normalise=True
)
AUTO_MLM = Readout(
    "Auto-MLM (2022): first token of the last layer, 64 tokens", pooling="cls", layer=-1, lengths=(64, 64)
)
