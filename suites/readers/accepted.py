"""Accepted answers as releases write them: a list of strings, any of which answers the question."""

from bench.suites import RecordError, shown


def strings(value: object, what: str) -> tuple[str, ...]:
    """Return a list of answers, also empty and repeated ones; `RecordError` for anything but a list of strings."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise RecordError(f"{what}: {shown(value)}", "a list of strings")
    if not value:
        raise RecordError(f"{what}: an empty list", "at least one accepted answer")
    try:
        "".join(value).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise RecordError(f"half of a surrogate pair ({half}) in {what}", "whole characters") from None
    return tuple(value)
