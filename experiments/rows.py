"""The committed results: one bundle for each arm, suite and seed under `experiments/rows`, unpacked under `build/rows`.

The curves of an arm's trainings are one bundle a seed, `ARM/curves-seed-N.tar.xz`.

    python -m experiments.rows [FOLDER]         unpack every bundle into FOLDER/ARM (default build/rows); `make rows`
    python -m experiments.rows pack [FOLDER]    write the bundles again from FOLDER, after rows were added or changed

Each FOLDER/ARM is a results folder for `bench compare`, `bench leaderboard build` and `bench reproduce`. Runs are left
out of bundles (1 to 10 MB a row). The same rows give the same bytes, and a bundle whose rows did not change is left
as it is, so that another version of xz does not rewrite it.
"""

import io
import sys
import tarfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from bench.evaluation.learning_curves.trainings import FOLDER as CURVES
from bench.evaluation.learning_curves.trainings import curve_files

BUNDLES = Path(__file__).with_name("rows")
FOLDER = Path("build", "rows")
LIMIT = 1_000_000
"""Bytes of a bundle; a larger one is refused."""


def unpack(folder: Path, bundles: Path = BUNDLES) -> None:
    """Write the files of every bundle below `folder`/ARM; files that are there already are replaced."""
    for bundle in sorted(bundles.glob("*/*.tar.xz")):
        for name, content in read(bundle).items():
            path = folder / bundle.parent.name / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def pack(folder: Path, bundles: Path = BUNDLES) -> list[Path]:
    """Bundle the rows of `folder`, a results folder for each arm; bundles of other arms, suites and seeds stay.

    Returns:
        The bundles that were written.

    Raises:
        ValueError: a bundle of `LIMIT` bytes or more.
    """
    contents: dict[Path, dict[str, bytes]] = defaultdict(dict)
    for path in sorted(folder.glob("*/*/*/*/*/seed-*/**/*")):  # ARM/DATA/SUITE/REGIME/SYSTEM/seed-N/…
        arm, _, suite, _, _, seed, *parts = path.relative_to(folder).parts
        if path.is_file() and parts[0] != "runs":
            name = path.relative_to(folder / arm).as_posix()
            contents[bundles / arm / f"{suite}-{seed}.tar.xz"][name] = path.read_bytes()
    for arm_folder in filter(Path.is_dir, sorted(folder.glob("*"))):
        for path in curve_files(arm_folder / CURVES):  # …/along-seed-N.json, …/cooled-seed-N.json
            name, seed = path.relative_to(arm_folder).as_posix(), path.stem[path.stem.index("seed-") :]
            contents[bundles / arm_folder.name / f"{CURVES}-{seed}.tar.xz"][name] = path.read_bytes()
    changed = [bundle for bundle, files in contents.items() if not bundle.is_file() or read(bundle) != files]
    for bundle in changed:
        data = archive(contents[bundle])
        if len(data) >= LIMIT:
            raise ValueError(f"{bundle} would have {len(data):,} bytes, expected fewer than {LIMIT:,}")
        bundle.parent.mkdir(parents=True, exist_ok=True)
        bundle.write_bytes(data)
    return changed


def read(bundle: Path) -> dict[str, bytes]:
    """Return the files of a bundle: name → content."""
    with tarfile.open(bundle, "r:xz") as stream:
        members = [tarfile.data_filter(member, ".") for member in stream]
        return {member.name: content.read() for member in members if (content := stream.extractfile(member))}


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return a tar.xz whose bytes depend on the names and contents of `files` alone."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:xz", format=tarfile.USTAR_FORMAT) as stream:
        for name in sorted(files):
            member = tarfile.TarInfo(name)  # no time and no owner
            member.size = len(files[name])
            stream.addfile(member, io.BytesIO(files[name]))
    return target.getvalue()


if __name__ == "__main__":
    if sys.argv[1:2] == ["pack"]:
        for written in pack(Path(*sys.argv[2:3] or [str(FOLDER)])):
            sys.stdout.write(f"wrote {written}\n")
    else:
        unpack(Path(*sys.argv[1:2] or [str(FOLDER)]))
