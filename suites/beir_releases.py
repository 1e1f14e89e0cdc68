"""BEIR's archives: where they are, their sizes and checksums, and what papers printed for its sets."""

from __future__ import annotations

from collections.abc import Sequence

from bench.publications import Release, Reported

URL = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets"
ELSEWHERE = {"webis-touche2020": "https://macavaney.us/beir-webis-touche2020-v1.zip"}
"""The archives that are not beside the others; there, the one of that name is version 2."""
LICENCES = {"scifact": "CC BY-NC 2.0, abstracts ODC-BY", "nfcorpus": "academic use only"}

# Name, bytes, md5. Source: ir_datasets' catalogue of downloads.
_TABLE = """
msmarco          1082258632 444067daf65d982533ea17ebd59501e4
trec-covid         73876720 ce62140cb23feb9becf6270d0d1fe6d1
nfcorpus            2448432 a89dba18a62ef92f7d323ec890a0d38d
nq                498307926 d4d3d2e48787a744b6f6e691ff534307
hotpotqa          654025350 f412724f78b0d91183a0e86805e16114
fiqa               17948027 17918ed23cd04fb15047f73e6c3bd9d9
arguana             3773617 8ad3e3c2a5867cdced806d6503f29b99
webis-touche2020  227137373 5ec7f8b18481fc2e9b3964ad1b22dd28
cqadupstack      5343728040 4e41456d7df8ee7760a7f866133bda78
quora              15853968 18fb154900ba42a600f84b839c173167
dbpedia-entity    639285131 c2a39eb420a3164af735795df012ac2c
scidocs           142471588 38121350fc3a4d2f48850f6aff52e4a9
fever            1236988269 5a818580227bfb4b35bb6fa46d9b6c03
climate-fever    1228666652 8b66f0a9126c521bae2bde127b4dc99d
scifact             2816079 5f7d1de60b170fc8027bb7898e2efca1
"""


def archives(tasks: Sequence[str]) -> tuple[Release, ...]:
    """List the archives, each with the tasks that need it; the forums of CQADupStack share one.

    Args:
        tasks: names of all tasks, `cqadupstack/android` among them.
    """
    return tuple(_archive(line, tasks) for line in _TABLE.strip().splitlines())


def reported() -> Sequence[Reported]:
    """List what papers printed."""
    from suites import reported as tables

    return tables.of("beir")


def _archive(line: str, tasks: Sequence[str]) -> Release:
    """Read a row of the table; an archive is unpacked into a folder of its own name beside the other sets."""
    name, size, md5 = line.split()
    return Release(
        path=f"beir/{name}.zip",
        urls=(ELSEWHERE.get(name, f"{URL}/{name}.zip"),),
        licence=LICENCES.get(name, "that of its source; see the card"),
        size=int(size),
        md5=md5,
        tasks=tuple(task for task in tasks if task.partition("/")[0] == name),
        unpack="beir",
    )
