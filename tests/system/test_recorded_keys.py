"""Every stage of every kind of run has the key that it had when keys were recorded: old stores stay of use.

`bench plan` of each command in `COMMANDS` is compared with `tests/golden/keys.json`. A key that changed on purpose is
recorded anew by

    BENCH_RECORD=1 python -m pytest tests/system/test_recorded_keys.py

and the commit says which keys changed, and why. The record holds the first twelve digits of every key by stage and
title, a digest of all stages of each command, and one whole identity of every form that a stage's identity takes.
"""

import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
RECORD = HERE.parent / "golden" / "keys.json"
RECORDING = os.environ.get("BENCH_RECORD") == "1"
PINNED = "--offline --device cpu --set compute.threads=1 --store store --json"
DIGITS = 12

MINI = "askubuntu,beir,lareqa,mewsli-x,mkqa,mrtydi,nq,tatoeba,triviaqa,xor-retrieve"
SW = "--suite mrtydi --task sw"
TUNED = "--suite beir,lareqa,mewsli-x,mkqa,mrtydi,nq,triviaqa,xor-retrieve --task en,sw,claims,test,de,te"
TRAINED = ("auto-mlm", "ccp", "cmlm", "contriever", "crop", "ict", "mlm", "msm", "quickthought", "simcse")
PRESETS = """
auto-mlm/mini auto-mlm/paper auto-mlm/paper-mixed bm25/elasticsearch bm25/lucene bm25/plain bm25/rank-bm25 ccp/mini
ccp/paper cmlm/paper contriever/mcontriever contriever/mini contriever/paper crop/cocondenser crop/contriever-crops
crop/msm crop/paper ict/mini ict/paper mlm/paper msm/mini msm/paper msm/paper-code pretrained/bge-m3
pretrained/contriever pretrained/infoxlm-base pretrained/infoxlm-large pretrained/labse pretrained/mbert
pretrained/mcontriever pretrained/me5-base pretrained/me5-large pretrained/me5-small pretrained/paraphrase-minilm
pretrained/xlm-r-base pretrained/xlm-r-large quickthought/mini quickthought/paper simcse/mini simcse/paper
"""
GRIDS = {
    "auto-mlm/lambda": "",
    "auto-mlm/parts": "",
    "ccp/table5": "",
    "ccp/table6": "",
    "contriever/augmentation": SW,
    "contriever/negatives": "",
    "contriever/queue": SW,
    "msm/heads": SW,
    "msm/layers": SW,
    "msm/loss": SW,
    "msm/negatives": SW,
    "msm/sharing": SW,
}
"""Grid → where it is run, nothing: on its own suite and task."""
OFFICIAL = {
    "askubuntu": "test,test-with-body,dev",
    "beir": "scifact,fiqa,msmarco,arguana,cqadupstack/android",
    "lareqa": "en,th",
    "mewsli-x": "de,en",
    "mkqa": "en,fi",
    "mkqa-questions": "ar",
    "mlqa-article-linking": "de",
    "mrtydi": "en,sw,sw@dev",
    "mrtydi-goldp": "en,sw",
    "mrtydi-v1-0": "sw",
    "nq": "",
    "stackfaq-duplicates": "",
    "stackfaq-threads": "",
    "tatoeba": "fra-eng,swh-eng",
    "tatoeba-pairs": "fra-deu",
    "triviaqa": "",
    "wikiqa-native": "ja",
    "xor-afriqa-en": "bem,swa,english",
    "xor-mlqa-en": "ar,english",
    "xor-retrieve": "ar,ko",
}
"""Suite → tasks that are asked for on official data, nothing: all."""
UNTUNED = ("askubuntu", "mrtydi-v1-0", "tatoeba", "tatoeba-pairs")
ENGLISH_ONLY = {"beir": "scifact,fiqa"}
"""Suite → tasks, where not all of `OFFICIAL` have training questions."""

STAGES = """
encode fit fuse index init mine mine_encode mine_index mine_search pairs pool post prepare read rerank score search
texts train train_cross tune validate weigh
"""
"""All but `audit` and `lint`, which no plan has."""

COMMANDS = {
    "bm25 on mini": f"--method bm25 --suite {MINI}",
    "crop on mini": "--method crop --suite askubuntu,tatoeba",
    **{f"{name} on mini": f"--method {name} {SW}" for name in TRAINED if name != "crop"},
    **{f"preset {name}": f"--preset {name} {SW}" for name in PRESETS.split()},
    **{f"grid {name}": f"--preset {name} {where}" for name, where in GRIDS.items()},
    "run preset": "--preset mini-grid --suite mrtydi,tatoeba --task sw,swh-eng",
    "settings": f"--method msm {TUNED} --setting unsupervised,english,multilingual,few-shot",
    "mined by bm25": f"--method crop {SW} --setting english,multilingual --set tune.mine=bm25",
    "mined by itself": f"--method crop {SW} --setting english --set tune.mine=self",
    "mined by an untrained encoder": f"--preset pretrained/mbert {SW} --set tune.mine=self",
    "few pairs": f"--method crop {SW} --setting english --set tune.shots=20",
    "readouts": "--method msm --suite mrtydi,lareqa --task en --readout both",
    "readout of mbert": f"--preset pretrained/mbert {SW} --readout both",
    "parts of a readout": f"--method crop {SW} --set encode.query_prompt=q: --set encode.pooling=cls "
    "--set encode.similarity=dot --set encode.passage_length=40",
    **{
        f"post {kind}": f"--method crop {SW} --set post.kind={kind}"
        for kind in ("centre", "whiten", "shift", "shift-scale", "calibrate")
    },
    "post calibrate, adversarial": f"--method crop {SW} --set post.kind=calibrate "
    "--set post.rotation.init=adversarial --setting english",
    "post of mbert": f"--preset pretrained/mbert {SW} --set post.kind=whiten --corpus mini",
    "fused": f"--method bm25+msm {SW} --seed 1",
    "fused by a given weight": f"--method bm25+msm {SW} --set fuse.weight=0.3",
    "fused by ranks": f"--method bm25+crop {SW} --set fuse.how=rrf",
    "fused and tuned": f"--method bm25+msm {SW} --setting english,multilingual",
    "fused and re-ranked": f"--method bm25+crop {SW} --rerank made/cross",
    "re-ranked by a folder": "--method bm25,crop --suite mrtydi,xor-retrieve --task en,te --rerank made/cross",
    "re-ranked by an id": f"--method bm25 {SW} --rerank cross-encoder/mmarco-mMiniLMv2-L12-H384-v1",
    "re-ranked by a trained one": "--method bm25,crop --suite mrtydi,xor-retrieve --task sw,te --rerank trained "
    "--setting english,multilingual",
    "re-ranked by a trained one, mined": f"--method bm25 {SW} --rerank trained --setting english "
    "--set rerank.train.steps=30 --set rerank.depth=10 --backbone made/encoder",
    "dev questions": "--method bm25,crop --suite mrtydi --task sw@dev,en",
    "own folder": "--method bm25,crop --suite beir --task made/tiny-beir --corpus made/corpus "
    "--set data.language=en --set prepare.max_documents=50",
    "own pairs": "--method crop --suite beir --task made/tiny-beir --setting english --set tune.data=made/pairs.jsonl "
    "--seed 0,1",
    "own backbone": f"--method crop,mlm,simcse {SW} --backbone made/encoder",
    "own encoder": f"--method pretrained {SW} --set method.model=made/encoder --readout both",
    "backbone by id": "--method crop --suite beir --task scifact --backbone xlm-roberta-base --profile small "
    "--corpus mini --data-dir data --set budget.tokens=1000000",
    "another world": f"--method crop,bm25 {SW} --set mini.world=few-names --setting english",
    "operations": f"--method crop {SW} --set budget.flops=1e12 --set search.k=20 --set data.unknown_ids=keep",
    "dialogues": "--method auto-mlm --suite askubuntu --corpus mini-dialogues",
    "labels": f"--method bm25 {SW} --set method.k1=1.2 --label mine",
    **{
        f"{suite}, official": f"--method bm25,crop --corpus mini --suite {suite} --data official --data-dir data"
        + (f" --task {tasks}" if tasks else "")
        for suite, tasks in OFFICIAL.items()
    },
    **{
        f"{suite}, official and tuned": f"--method crop --corpus mini --suite {suite} --data official --data-dir data "
        "--setting english,multilingual,few-shot"
        + (f" --task {tasks}" if (tasks := ENGLISH_ONLY.get(suite, OFFICIAL[suite]).split("@")[0]) else "")
        for suite in OFFICIAL
        if suite not in UNTUNED
    },
}
"""Name → the words after `bench plan`."""


def _official() -> Iterator[str]:
    """Yield the paths of official files, in the layouts that the suites read."""
    yield from ("askubuntu/dev.txt", "askubuntu/test.txt", "askubuntu/text_tokenized.txt.gz")
    splits = {"scifact": "test train", "fiqa": "test dev train", "msmarco": "dev", "arguana": "test"}
    beir = {f"beir/{name}": own for name, own in splits.items()} | {"beir/cqadupstack/android": "test"}
    beir |= {"mrtydi-goldp/en": "test dev train", "mkqa-questions/ar": "test", "mlqa-article-linking/de": "test"}
    beir |= {f"mrtydi-goldp/{code}": "test train" for code in ("ar", "bn", "fi", "id", "ja", "ko", "ru", "sw", "te")}
    beir |= {"wikiqa-native/ja": "test train", "wikiqa-native/th": "test dev train", "stackfaq-threads": "test"}
    beir |= {"xor-afriqa-en": "test dev train", "xor-mlqa-en": "test", "stackfaq-duplicates": ""}
    for folder, of in beir.items():
        yield from (f"{folder}/corpus.jsonl", f"{folder}/queries.jsonl")
        yield from (f"{folder}/qrels/{split}.tsv" for split in of.split())
    yield "stackfaq-duplicates/askubuntu-format/test.txt"
    pool = "ar de el en es hi ru th tr vi zh"
    yield from (f"lareqa/xquad-r/{code}.json" for code in pool.split())
    yield from ("squad/train-v1.1.json", "squad/dev-v1.1.json", "supervised/en/pairs.jsonl")
    names = "candidate_set_entities wikinews_mentions-dev wikinews_mentions-test wikipedia_pairs-train"
    yield from (f"mewsli-x/{name}.jsonl" for name in names.split())
    languages = "arabic bengali english finnish indonesian japanese korean russian swahili telugu thai"
    for language in languages.split():
        yield f"mrtydi/mrtydi-v1.1-{language}/collection/docs.jsonl.gz"
        for split in ("train", "dev", "test"):
            yield from (
                f"mrtydi/mrtydi-v1.1-{language}/{name}" for name in (f"topic.{split}.tsv", f"qrels.{split}.txt")
            )
    yield from ("dpr-w100/psgs_w100.tsv.gz", "mkqa/mkqa.jsonl.gz")
    yield from ("nq/biencoder-nq-train.json", "nq/biencoder-nq-dev.json", "nq/nq-dev.qa.csv", "nq/nq-test.qa.csv")
    yield from ("triviaqa/trivia-dev.qa.csv.gz", "triviaqa/trivia-test.qa.csv.gz")
    for pair in ("fra-eng", "swh-eng"):
        yield from (f"tatoeba/v1/tatoeba.{pair}.{side}" for side in pair.split("-"))
    yield from (f"tatoeba-pairs/v1/tatoeba.fra-deu.{side}" for side in ("fra", "deu"))
    names = "enwiki_20190201_w100.tsv xor_dev_retrieve_eng_span_v1_1.jsonl xor_train_dpr.json"
    yield from (f"xor-retrieve/{name}" for name in f"{names} xor_train_retrieve_eng_span.jsonl".split())


def _write(place: Path) -> None:
    """Write the inputs of all commands; a plan reads their checksums only, so each official file holds its path."""
    for name in sorted(set(_official())):
        path = place / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    made = place / "made"
    shutil.copytree(HERE.parent / "fixtures" / "tiny-beir", made / "tiny-beir")
    (made / "corpus").mkdir()
    (made / "corpus" / "en.jsonl").write_text('{"id": "a", "sentences": ["One sentence.", "Another one."]}\n')
    (made / "pairs.jsonl").write_text('{"query": "Who?", "positive": "Nobody."}\n')
    model = {"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 16, "max_position_embeddings": 512}
    for name in ("encoder", "cross"):
        folder = made / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(model))
        (folder / "tokenizer_config.json").write_text("{}")
        (folder / "model.safetensors").write_text(name)
    (place / "irds" / "mr-tydi" / "sw").mkdir(parents=True)


Plan = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def planned(pinned: tuple[Path, Callable[..., tuple[int, str, str]]]) -> Plan:
    """Return what plans a command, in one process for all of them, with versions as recorded."""
    place, bench = pinned
    _write(place)

    def plan(words: str) -> dict[str, Any]:
        status, out, err = bench("plan", *shlex.split(f"{words} {PINNED}"))
        assert status == 0, err
        found: dict[str, Any] = json.loads(out)
        return found

    return plan


def _form(value: Any) -> Any:
    """The names in an identity, without values; one of a list's items stands for all."""
    if isinstance(value, Mapping):
        return {name: _form(part) for name, part in sorted(value.items()) if name != "config"}
    return [_form(value[0])] if isinstance(value, list) and value else None


class Record:
    """What is recorded: `keys`, `commands` and `identities`, see the module."""

    def __init__(self) -> None:
        """Begin with nothing recorded."""
        self.keys: dict[str, dict[str, set[str]]] = {}
        self.commands: dict[str, dict[str, Any]] = {}
        self.identities: dict[str, dict[str, Any]] = {}

    def add(self, name: str, plan: Mapping[str, Any]) -> None:
        """Add a command's plan."""
        self.commands[name] = _summary(plan)
        for step in plan["steps"]:
            stage, title = step["stage"], step["title"]
            self.keys.setdefault(stage, {}).setdefault(title, set()).add(step["key"][:DIGITS])
            form = f"{stage} {hashlib.sha256(json.dumps(_form(step['identity'])).encode()).hexdigest()[:8]}"
            self.identities.setdefault(form, {"title": title, "identity": step["identity"]})

    def write(self) -> None:
        """Write the record, a line for every title, command and identity."""
        keys = {
            stage: {title: " ".join(sorted(found)) for title, found in sorted(titles.items())}
            for stage, titles in sorted(self.keys.items())
        }
        parts = [
            '"commands": ' + _lines(self.commands),
            '"identities": ' + _lines(dict(sorted(self.identities.items()))),
            '"keys": {\n'
            + ",\n".join(f"{json.dumps(stage)}: {_lines(titles)}" for stage, titles in keys.items())
            + "\n}",
        ]
        RECORD.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _lines(values: Mapping[str, Any]) -> str:
    """A JSON object, a line for every value."""
    rows = (f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}" for name, value in values.items())
    return "{\n" + ",\n".join(rows) + "\n}"


def _summary(plan: Mapping[str, Any]) -> dict[str, Any]:
    """What is recorded of a command: how many stages, a digest of all of them, what does not apply, tags of systems."""
    steps = sorted((step["stage"], step["title"], step["key"]) for step in plan["steps"])
    refused = sorted({(cell["system"], cell["suite"], cell["setting"]) for cell in plan["not_applicable"]})
    tags = {str(step["identity"]["tag"]) for step in plan["steps"] if "tag" in step["identity"]}
    return {
        "stages": len(steps),
        "digest": hashlib.sha256(json.dumps(steps).encode()).hexdigest()[:DIGITS],
        "not_applicable": [" ".join(cell) for cell in refused],
        "tags": sorted(tags),
    }


@pytest.fixture(scope="module")
def recorded() -> Iterator[Record | dict[str, Any]]:
    """What was recorded; a new record, which is written at the end, where `BENCH_RECORD` is 1."""
    if not RECORDING:
        yield json.loads(RECORD.read_text(encoding="utf-8"))
        return
    record = Record()
    yield record
    assert set(record.commands) == set(COMMANDS), "a record is made of all commands at once"
    record.write()


@pytest.mark.parametrize("name", COMMANDS)
def test_keys_are_as_recorded(name: str, planned: Plan, recorded: Record | dict[str, Any]) -> None:
    """Same stages, same titles, same keys, same tags, same cells that do not apply."""
    plan = planned(COMMANDS[name])
    if isinstance(recorded, Record):
        recorded.add(name, plan)
        return
    known, found = recorded["commands"][name], _summary(plan)
    if found != known:
        pytest.fail("\n".join([f"bench plan {COMMANDS[name]}", *_differences(known, found, plan, recorded)]))


def test_every_stage_is_covered() -> None:
    """A stage that no recorded command has would be free to change its keys."""
    assert set(json.loads(RECORD.read_text(encoding="utf-8"))["keys"]) >= set(STAGES.split())


def _differences(known: dict[str, Any], found: dict[str, Any], plan: Any, recorded: dict[str, Any]) -> Iterator[str]:
    """Say what differs: counts and tags, then the first stages whose key is new though their inputs' are not."""
    for part in ("stages", "not_applicable", "tags"):
        if known[part] != found[part]:
            yield f"{part}: recorded {known[part]}, found {found[part]}"
    keys = {key for titles in recorded["keys"].values() for text in titles.values() for key in text.split()}
    new = []
    for step in plan["steps"]:
        stage, title, key, identity = step["stage"], step["title"], step["key"], step["identity"]
        titles = recorded["keys"].get(stage, {})
        if key[:DIGITS] in titles.get(title, "").split():
            continue
        if all(given[:DIGITS] in keys for given in identity["inputs"].values()):
            new.append((stage, title, key, identity))
    for stage, title, key, identity in new[:5]:
        known_keys = recorded["keys"].get(stage, {}).get(title, "no stage of that title")
        yield f"{stage} of {title}: found {key[:DIGITS]}, recorded {known_keys}; of its identity:"
        yield from (f"    {line}" for line in _nearest(stage, title, identity, recorded["identities"]))
    if len(new) > 5:
        yield f"and {len(new) - 5} more"


def _nearest(stage: str, title: str, identity: Any, identities: Mapping[str, Any]) -> list[str]:
    """How an identity differs from the nearest recorded one of its stage, of the same title where there is one."""
    alike = [one for form, one in identities.items() if form.split()[0] == stage]
    alike = [one for one in alike if one["title"] == title] or alike
    each = [(_flat(one["identity"]), one["title"]) for one in alike]
    own = _flat(identity)
    if not each:
        return ["no identity of that stage was recorded"]
    best, of = min(each, key=lambda one: len(set(one[0].items()) ^ set(own.items())))
    changed = [name for name in sorted({*best, *own}) if best.get(name) != own.get(name)]
    rows = [f"{name}: recorded {best.get(name, '—')}, found {own.get(name, '—')}" for name in changed]
    return [f"(held against that of {of})", *rows] if of != title else rows


def _flat(value: Any, before: str = "") -> dict[str, str]:
    """Path of every value in an identity → the value as JSON."""
    if isinstance(value, Mapping) and value:
        return {
            name: one for key, part in value.items() for name, one in _flat(part, f"{before}.{key}".strip(".")).items()
        }
    return {before: json.dumps(value)}
