"""Results that somebody hands in, changed and sealed again or not: refused in words, or safe for all later commands."""

import json
from pathlib import Path
from typing import Any

from tests.fuzz.attacks import added, copied
from tests.fuzz.harness import Case, Draw


def case(draw: Draw, folder: Path) -> Case:
    """Change one file of a bundle; half the time its checksums and the seal are made to agree."""
    from bench.core.files import sha256_file, write_sealed

    bundle = copied(folder)
    path = draw.choice([*sorted(file for file in bundle.rglob("*") if file.is_file()), bundle / "result.json"])
    data = path.read_bytes()
    if path.suffix == ".json" and draw.random() < 0.8:
        value: Any = json.loads(data)
        changed = json.dumps(draw.altered(value)).encode("utf-8", "surrogatepass")
    else:
        changed = draw.damaged(data)
    path.write_bytes(changed)
    if draw.random() < 0.6:  # as somebody would who means it
        try:
            result = json.loads((bundle / "result.json").read_bytes())
            seals = {name: sha256_file(bundle / name) for name in result["files"] if (bundle / name).is_file()}
            write_sealed(bundle / "result.json", {**result, "files": {**result["files"], **seals}} | {"seal": None})
        except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError):
            pass  # no longer a result at all
    return Case(lambda: added(folder, bundle))
