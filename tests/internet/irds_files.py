"""Tiny files in the layouts, and at the addresses, of those that ir_datasets fetches: its downloads have both."""

import gzip
import json
from typing import Any

from tests.internet.made import COUNT, Files, lines, packed, parquet, question, sentence

_NUMBERS = range(COUNT)
_HUB = "https://huggingface.co/datasets"
_CLIRMATRIX = "http://www.cs.jhu.edu/~shuosun/clirmatrix/data"
_HC4 = "https://raw.githubusercontent.com/hltcoe/HC4/main/resources/hc4"
_NIST = "https://trec.nist.gov/data/neuclir"


def miracl() -> Files:
    """Swahili: passages, and questions and judgements of dev."""
    documents = ({"docid": f"{at}#0", "title": f"T{at}", "text": sentence(at)} for at in _NUMBERS)
    part = f"{_HUB}/macavaney/miracl-noauth/resolve/main/miracl-v1.0-sw"
    return {
        f"{_HUB}/miracl/miracl-corpus/resolve/main/miracl-corpus-v1.0-sw/docs-0.jsonl.gz": _gzip(lines(*documents)),
        f"{part}/topics/topics.miracl-v1.0-sw-dev.tsv": _rows("{0}#0\t{1}"),
        f"{part}/qrels/qrels.miracl-v1.0-sw-dev.tsv": _rows("{0}#0\tQ0\t{0}#0\t1"),
    }


def mmarco() -> Files:
    """Dutch, of Google's translation."""
    part = f"{_HUB}/unicamp-dl/mmarco/resolve/main/data"
    return {
        f"{part}/google/collections/dutch_collection.tsv": _rows("{0}\t{2}"),
        f"{part}/google/queries/dev/dutch_queries.dev.tsv": _rows("{0}\t{1}"),
        f"{part}/qrels.dev.small.tsv": _rows("{0}\t0\t{0}\t1"),
    }


def nanobeir() -> Files:
    """SciFact: three tables."""
    tables = {
        "corpus": ({"_id": f"d{at}", "text": sentence(at)} for at in _NUMBERS),
        "queries": ({"_id": f"q{at}", "text": question(at)} for at in _NUMBERS),
        "qrels": ({"query-id": f"q{at}", "corpus-id": f"d{at}"} for at in _NUMBERS),
    }
    return {
        f"{_HUB}/zeta-alpha-ai/NanoSciFact/resolve/main/{name}/train-00000-of-00001.parquet": parquet(*rows)
        for name, rows in tables.items()
    }


def neuclir() -> Files:
    """Persian: one collection, topics and judgements of two years."""
    qrels = _rows("{0} 0 d{0} 3")
    return {
        f"{_HUB}/neuclir/neuclir1/resolve/main/data/fas-00000-of-00001.jsonl.gz": _gzip(_news()),
        f"{_NIST}/2022/topics.0720.utf8.jsonl": _topics("fas"),
        f"{_NIST}/2022/2022-qrels.all": _rows("{0} fas d{0} 3"),
        f"{_NIST}/2023/neuclir-2023-topics.0605.jsonl": _topics("fas"),
        f"{_NIST}/2023/neuclir-2023-qrels.final.tar.gz": packed({"qrels.final.gains.fas": qrels}, "gz"),
    }


def hc4() -> Files:
    """Topics and judgements of Persian; its documents are had by hand."""
    return {
        f"{_HC4}/test.topics.v1-0.jsonl": _topics("fas"),
        f"{_HC4}/fas/test.qrels.v1-0.txt": _rows("{0} 0 d{0} 3"),
    }


def hc4_documents() -> Files:
    """What its authors' script writes, by its place in ir_datasets' folder."""
    return {"hc4/fas/hc4_docs.jsonl": _news()}


_OF_CLIRMATRIX = {
    "docs/de": ("clirmatrix_docs", "DOCS/de.tsv.gz"),
    "docs/sw": ("clirmatrix_docs", "DOCS/sw.tsv.gz"),
    "queries/en_de/test1": ("clirmatrix_multi8", "MULTI-8/test1/en.de.test1.jl.gz"),
    "queries/en_sw/test1": ("clirmatrix_bi139_base", "BI-139/base/en/en.sw.test1.base.jl.gz"),
}
"""By key in the list that names where each file is, its part and the address. Those of documents and of BI-139 are the
true ones; that of MULTI-8, which nothing but the list says, is in their likeness.
"""


def clirmatrix(*keys: str) -> Files:
    """Return the list, and those of its files: documents, and questions with the grades of documents."""
    rows = (
        {"src_id": f"Q{at}", "src_query": question(at), "tgt_results": [[str(at), 6], [str((at + 1) % COUNT), 0]]}
        for at in _NUMBERS
    )
    judged, documents = _gzip(lines(*rows)), _gzip(_rows("{0}\t{2}"))
    listed: dict[str, dict[str, Any]] = {}
    for key, (part, path) in _OF_CLIRMATRIX.items():
        listed.setdefault(part, {})[key] = {"url": f"{_CLIRMATRIX}/{path}", "cache_path": path}
    urls = {key: f"{_CLIRMATRIX}/{_OF_CLIRMATRIX[key][1]}" for key in keys}
    files = {url: documents if key.startswith("docs/") else judged for key, url in urls.items()}
    return {f"{_CLIRMATRIX}/downloads.json.gz": _gzip(json.dumps(listed).encode()), **files}


def any_id() -> Files:
    """Cranfield, an archive of texts with marked fields, and English to Swahili of BI-139, whose ids no list has."""
    documents = "".join(f".I {at}\n.T\nT{at}\n.A\nx\n.B\ny\n.W\n{sentence(at)}\n" for at in _NUMBERS)
    queries = "".join(f".I {at:03}\n.W\n{question(at)}\n" for at in _NUMBERS)
    judged = "".join(f"{at + 1} {at} 4\n" for at in _NUMBERS)
    members = {"cran.all.1400": documents, "cran.qry": queries, "cranqrel": judged}
    archive = packed({name: text.encode() for name, text in members.items()}, "gz")
    return {
        "http://ir.dcs.gla.ac.uk/resources/test_collections/cran/cran.tar.gz": archive,
        **clirmatrix("docs/sw", "queries/en_sw/test1"),
    }


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def _rows(form: str) -> bytes:
    """Return a line a number: {0} the number, {1} its question, {2} its sentence."""
    return "".join(f"{form}\n".format(at, question(at), sentence(at)) for at in _NUMBERS).encode()


def _news() -> bytes:
    return lines(
        *(
            {"id": f"d{at}", "title": f"T{at}", "text": sentence(at), "url": "", "time": "", "cc_file": ""}
            for at in _NUMBERS
        )
    )


def _topics(language: str) -> bytes:
    """Return topics of HC4 and NeuCLIR: in English, and each language twice, by people and by a machine."""
    return lines(*(_topic(at, language) for at in _NUMBERS))


def _topic(number: int, language: str) -> dict[str, Any]:
    sources = [("eng", "original")]
    sources += [(name, f"{by} translation") for name in ("fas", "rus", "zho") for by in ("human", "google")]
    said = {"topic_title": question(number), "topic_description": "Find it.", "topic_narrative": "All of it."}
    return {
        "topic_id": str(number),
        "languages_with_qrels": [language],
        "topics": [{"lang": name, "source": source, **said} for name, source in sources],
        "narratives": {language: "All of it."},
        "report": {"text": "", "url": "", "date": ""},
    }
