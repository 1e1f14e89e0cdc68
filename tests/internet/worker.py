"""Run commands of `bench` in a process that has one user's environment, with small releases in place of large ones.

    python tests/internet/worker.py FACTS < REQUESTS

A request is a line of JSON, the words after `bench`; the answer is one: `[exit status, stdout, stderr]`. The file FACTS
has size and sha256 by the path of a release: they stand for those that were published of the true files. Published
counts of passages and questions, and ir_datasets' checksums, are not compared; of a corpus in very many files the first
few are all. Nothing else is changed.
"""

import contextlib
import io
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

FIRST = 2
"""Files of a language that are all of it."""


def shrink(facts: dict[str, tuple[int, str]]) -> None:
    """Let plugins' releases be those of the small files."""
    from bench.plugins import Plugins
    from bench.types import PretrainingCorpus, Suite, Task

    def uncounted(task: Task) -> Task:
        subsets = (replace(part, counts={}, corpus=replace(part.corpus, documents=None)) for part in task.subsets)
        return replace(task, subsets=tuple(subsets))

    def small_suite(suite: Suite) -> Suite:
        releases = []
        for release in suite.releases() if suite.releases else ():
            size, sha256 = facts.get(release.path, (release.size, release.sha256))
            known = bool(release.sha256 or release.md5)  # what nobody published stays unknown
            size = None if release.size is None else size
            releases.append(replace(release, size=size, sha256=sha256 if known else "", md5=""))
        return replace(
            suite,
            load=lambda name, request: uncounted(suite.load(name, request)),
            releases=(lambda: tuple(releases)) if releases else None,
        )

    def small_corpus(corpus: PretrainingCorpus) -> PretrainingCorpus:
        known = {path.removeprefix(f"{corpus.name}/"): sha256 for path, (_, sha256) in facts.items()}
        checksums = {name: known[name] for name in corpus.sha256 if name in known}
        return replace(corpus, sha256=checksums, first=corpus.first or (FIRST if corpus.shards else None))

    suite_of, corpora_of = Plugins.suite, Plugins.corpora_by_name
    changed: Any = Plugins
    changed.suite = lambda self, name: small_suite(suite_of(self, name))
    changed.corpora_by_name = property(
        lambda self: {name: small_corpus(corpus) for name, corpus in corpora_of.__get__(self).items()}
    )


def unchecked_downloads() -> None:
    """Let ir_datasets take files of other checksums than its own."""
    from ir_datasets import util

    checked = util.HashStream
    util.HashStream = lambda stream, *_, **fields: checked(stream, None, **fields)


def answer(words: list[str]) -> tuple[int, str, str]:
    """Run one command; return its exit status and what it printed."""
    from bench.cli import main

    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as end:
            status = int(end.code or 0)
    out.flush()
    return status, out.buffer.getvalue().decode(), err.getvalue()


if __name__ == "__main__":
    os.environ.setdefault("IR_DATASETS_TQDM", "0")
    facts: dict[str, tuple[int, str]] = {}
    shrink(facts)
    unchecked_downloads()
    for line in sys.stdin:
        facts.update(json.loads(Path(sys.argv[1]).read_text("utf-8")))
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()
