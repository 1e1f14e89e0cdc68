"""The passport of sources is what suites, corpora and presets say, and says of nothing more than is known."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

from bench.plugins import load

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("sources", ROOT / "docs" / "sources.py")
assert SPEC is not None
assert SPEC.loader is not None
sources = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(sources)

TABLE: dict[str, Any] = json.loads((ROOT / "suites" / "sources.json").read_bytes())
COMMIT = re.compile("[0-9a-f]{40}")


def test_table_and_page_are_what_the_code_says() -> None:
    assert sources.table() == TABLE, "run `make docs`"
    assert sources.as_json(TABLE) == (ROOT / "suites" / "sources.json").read_text(encoding="utf-8"), "run `make docs`"
    page = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
    assert sources.page(TABLE, sources.probed()) == page, "run `make docs`"


def test_every_file_of_every_suite_is_there() -> None:
    """Each with an address or with what a person does, and a figure only with whose it is."""
    found = load()
    assert set(TABLE["suites"]) == set(found.suites)
    files = {name: suite["files"] for name, suite in TABLE["suites"].items()}
    assert {name: len(files[name]) for name in ("tatoeba", "mrtydi", "beir", "lareqa", "nq", "mewsli-x")} == {
        "tatoeba": 224,
        "mrtydi": 11,
        "beir": 15,
        "lareqa": 11,
        "nq": 5,
        "mewsli-x": 2,
    }
    for file in (file for of_suite in files.values() for file in of_suite):
        assert bool(file["addresses"]) != bool(file.get("by_hand")), file
        known = any(file[figure] for figure in ("size", "sha256", "md5"))
        assert known != (file["origin"] == "first fetch"), file
    mkqa = next(file for file in files["mkqa"] if file["path"] == "mkqa/mkqa.jsonl.gz")
    assert [address.split("/")[-3] for address in mkqa["addresses"]] == [
        "main",
        "651b8cc85c407270b024157aff06ee6ab8c4fc6d",
        "master",
    ]
    pairs = {file["path"]: (file["size"], file["md5"]) for file in files["nq"] if "biencoder" in file["path"]}
    assert pairs["nq/biencoder-nq-train.json.gz"] == (2_314_892_908, "a1c927b5adae71388eb064329387709f")


def test_corpora_of_the_hub_are_pinned() -> None:
    """To a commit, by an address that the endpoint resolves; the dump of the same date is another corpus."""
    corpora = TABLE["corpora"]
    assert set(corpora) == set(load().corpora)
    for name, corpus in corpora.items():
        for address in corpus.get("addresses", ()):
            assert "huggingface.co" not in address, name
            if address.startswith("hf://"):
                assert COMMIT.fullmatch(corpus["revision"]), name
    wikipedia, dumps = corpora["wikipedia"], corpora["wikipedia-dumps"]
    assert wikipedia["addresses"][0].endswith("/20231101.{language}/train-*.parquet")
    assert (dumps["revision"], dumps["sizes"].keys()) == ("20231101", wikipedia["sizes"].keys())
    assert corpora["fineweb-2"]["codes"]["sw"] == "swh_Latn"


def test_models_are_named_once_a_revision() -> None:
    names = [(model["repository"], model["revision"]) for model in TABLE["models"]]
    assert len(set(names)) == len(names)
    assert all(revision is None or COMMIT.fullmatch(revision) for _, revision in names)
    used = {user for model in TABLE["models"] for user in model["used_by"]}
    assert {"pretrained/labse", "msm/paper", "--profile small"} <= used


def test_the_page_says_who_was_asked() -> None:
    """Nobody was, until somebody puts what `bench data probe --json` printed there; then when, and what it said."""
    if not sources.PROBED.exists():
        page = sources.page(TABLE, {})
        assert "not yet" in page
        assert not re.search(r"\| (open|moved|other|gone|unknown)\b", page)
    address = TABLE["suites"]["mkqa"]["files"][0]["addresses"][0]
    answers = [
        {"source": "mkqa", "address": address, "verdict": "open"},
        {"source": "cc100", "address": "https://data.statmt.org/cc-100/af.txt.xz", "verdict": "gone"},
    ]
    page = sources.page(TABLE, {"time": "2031-02-03T04:05:06Z", "addresses": answers})
    assert (page.count("open (2031-02-03)"), page.count("gone (2031-02-03)")) == (1, 1)
