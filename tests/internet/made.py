"""What tiny files are made of: a few invented words, rows and archives."""

import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from typing import Literal

Files = Mapping[str, bytes]
COUNT = 12


def sentence(number: int) -> str:
    """Return a sentence of words of its own and of one that all have."""
    return f"neno{number}a neno{number}b kila neno{number}c ."


def question(number: int) -> str:
    return f"neno{number}b neno{number}a?"


def lines(*rows: object) -> bytes:
    """Return rows of JSON."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def packed(files: Files, form: Literal["gz", "bz2", "zip"]) -> bytes:
    """Return an archive, `gz` or `bz2` of tar, or `zip`."""
    stream = io.BytesIO()
    if form == "zip":
        with zipfile.ZipFile(stream, "w") as zipped:
            for name, data in files.items():
                zipped.writestr(name, data)
        return stream.getvalue()
    with tarfile.open(fileobj=stream, mode="w:gz" if form == "gz" else "w:bz2") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def parquet(*rows: Mapping[str, str]) -> bytes:
    """Return a table."""
    import pyarrow as pa
    from pyarrow import parquet as form

    stream = io.BytesIO()
    form.write_table(pa.Table.from_pylist([dict(row) for row in rows]), stream)
    return stream.getvalue()
