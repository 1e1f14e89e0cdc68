"""What `bench reproduce --json` printed of a result, read for the record of a maintainer."""

from pathlib import Path
from typing import Any

from bench.core.errors import DataError
from bench.data.formats.faults import RecordError
from leaderboard.submissions.bundle import Candidate
from leaderboard.submissions.recompute import TOLERANCE
from leaderboard.submissions.strict_json import parse

_HINT = "type `bench reproduce RESULT_FILE --json > FILE`"


def replayed(path: Path, found: Candidate, when: str) -> dict[str, Any]:
    """Return the record's part on a replay. Raises `DataError` where it was none, not anew, or of another result."""
    try:
        said = parse(path.read_bytes())
        verdict, values = str(said["verdict"]), said["values"]
        theirs = {(one["task"], one["leg"], one["measure"]): one["theirs"] for one in values}
        again = int(said["stages_run"])
    except (RecordError, KeyError, TypeError, ValueError) as error:
        raise DataError(path, None, "no report of `bench reproduce`", "its JSON", _HINT) from error
    if verdict not in ("OK", "close") or not again:
        what = f"the verdict {verdict[:20]!a} with {again} stages run"
        raise DataError(path, None, what, "OK or close, made anew", _HINT)
    for task, legs in found.content.tasks.items():
        for name, leg in legs.items():
            for measure, value in leg.measures.items():
                other = theirs.get((task, name, measure))
                if other is None or abs(other - value) > TOLERANCE:
                    raise DataError(path, None, f"{measure} of {task} {name} = {other}", f"{value}, as the result says")
    return {"verdict": verdict, "when": when}
