"""The variants of files of `bench run` and `bench curve`, a process for each variant and seed, side by side.

    python -m experiments.side_by_side SEED,SEED LOGS FILE.toml… [--variants NAME,NAME] [--jobs N] [OPTIONS…]

`bench run FILE.toml` gives one GPU to one stage at a time. Small trainings leave most of a card idle, so a process for
each variant, or for those that are named, is several times as fast; --jobs is how many run at a time, seed by seed, on
a processor one for each core (default: all). Each carries out the files in their order: by `bench curve` one that sets
`curve.points`, any other by `bench run`, with the same options. What is printed lies in LOGS/VARIANT-SEED.log. Ends
with 1 where a process failed.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path


def single(text: str, variant: str, seed: int) -> str:
    """Return a file's text with one of its variants and one seed: its other tables `[variants.NAME]` are cut out."""
    head, *tables = re.split(r"(?m)^(?=\[variants\.)", text)
    (table,) = (table for table in tables if table.startswith(f"[variants.{variant}]"))
    return re.sub(r"(?m)^seed = .*$", f"seed = [{seed}]", head) + table


def main(typed: Sequence[str]) -> int:
    """Run them; 1 where one failed."""
    seeds, logs, *rest = typed
    names = list(takewhile(lambda text: text.endswith(".toml"), rest))
    options, files, folder = rest[len(names) :], list(map(Path, names)), Path(logs)
    variants = list(tomllib.loads(files[0].read_text())["variants"])
    if options[:1] == ["--variants"]:
        variants, options = options[1].split(","), options[2:]
    trainings = [(variant, seed) for seed in map(int, seeds.split(",")) for variant in variants]
    jobs = len(trainings)
    if options[:1] == ["--jobs"]:
        jobs, options = int(options[1]), options[2:]
    folder.mkdir(parents=True, exist_ok=True)

    def run(training: tuple[str, int]) -> int:
        """Run one, until a command fails; return its exit status."""
        variant, seed = training
        for file in files:
            text = single(file.read_text(), variant, seed)
            alone = file.with_name(f"{file.stem}-{variant}-{seed}.toml")  # in its folder, where paths start
            alone.write_text(text)
            command = "curve" if "curve.points" in text else "run"
            try:
                with (folder / f"{variant}-{seed}.log").open("ab") as log:
                    command_line = [sys.executable, "-m", "bench", command, str(alone), *options]
                    status = subprocess.run(command_line, stdout=log, stderr=log, check=False).returncode
            finally:
                alone.unlink()
            if status:
                return status
        return 0

    with ThreadPoolExecutor(jobs) as pool:
        return int(any(list(pool.map(run, trainings))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
