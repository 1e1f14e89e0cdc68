"""Write the passport of sources: suites/sources.json, which others read, and sources.md, which people do: `make docs`.

Both are made of what suites, corpora and presets say. What `bench data probe --json` printed on a machine with a
network goes to probed.json, if somebody puts it there; then the page says when each address was asked and what it said.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from bench import plugins
from bench.cli.output import size_text
from bench.config.profiles import PROFILES
from bench.data.fetching import probe

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "suites" / "sources.json"
DOCUMENT = ROOT / "docs" / "sources.md"
PROBED = ROOT / "docs" / "probed.json"
_ALIKE = 12  # files of one folder and one host; more are one row

_LEAD = """# Sources

Where everything that can be fetched comes from, and who published its size and checksum. `make docs`
writes this page and [suites/sources.json](../suites/sources.json), which is part of the package, from what suites,
corpora and presets declare.

- Addresses are listed in the order in which they are tried. `hf://` is the Hugging Face hub (`HF_ENDPOINT`,
  `HF_TOKEN`), whose own sha256 counts as published.
- `first fetch` means that nobody published a checksum: that of the first download is recorded next to the file, and
  later ones are compared with it.

`bench data probe [NAME]` tries each address from your machine and prints open, moved, other, gone or unknown."""


def table() -> dict[str, Any]:
    """Return the passport of this release."""
    found = plugins.load()
    suites = [found.suite(name) for name in sorted(found.suites)]
    methods = (owned.value for owned in found.methods.values())
    backbones = {f"--profile {profile.name}": profile.backbone for profile in PROFILES.values()}
    corpora = [found.corpora_by_name[name] for name in sorted(found.corpora)]
    return probe.table(suites, corpora, probe.models(methods, backbones))


def as_json(value: Mapping[str, Any]) -> str:
    """Return the passport as text: a line a file, so that a change is one line."""
    suites = (
        f'    {json.dumps(name)}: {{"licence": {_line(suite["licence"])}, "files": [{_lines(suite["files"])}]}}'
        for name, suite in value["suites"].items()
    )
    corpora = (f"    {json.dumps(name)}: {_line(corpus)}" for name, corpus in value["corpora"].items())
    parts = [f'  "format": {value["format"]}', f'  "suites": {{\n{_joined(suites)}\n  }}']
    parts += [f'  "corpora": {{\n{_joined(corpora)}\n  }}', f'  "models": [{_lines(value["models"], "    ", "  ")}]']
    return f"{{\n{_joined(parts)}\n}}\n"


def page(value: Mapping[str, Any], probed: Mapping[str, Any]) -> str:
    """Return the page; `probed` is what `bench data probe --json` printed, empty where nobody has asked."""
    answers = probed.get("addresses", ())
    day = str(probed.get("time", ""))[:10]

    def asked(addresses: Iterable[str] = (), source: str = "") -> str:
        names = {*addresses}
        verdicts = [row["verdict"] for row in answers if row["source"] == source or row["address"] in names]
        return f"{', '.join(dict.fromkeys(verdicts))} ({day})" if verdicts else "not yet"

    parts = [_LEAD, "## Suites"]
    for name, suite in value["suites"].items():
        parts.append(f"### {name}\n\nLicence: {suite['licence'].rstrip('.')}.")
        rows = list(_file_rows(suite["files"], asked))
        head = ("file", "addresses", "size", "checksum", "figures from", "probed")
        parts.append(
            _table(head, rows) if rows else "It lists no files: ir_datasets fetches them (`bench show` says so)."
        )
    parts.append("## Corpora\n\nFiles by pattern; sizes of each language are in the JSON file.")
    for name, corpus in value["corpora"].items():
        parts.append(f"### {name}\n\nLicence: {corpus['licence'].rstrip('.')}.")
        if "mix" in corpus:
            parts.append(f"Made of `{corpus['mix']}`.")
            continue
        known = [size for size in corpus["sizes"].values() if size is not None]
        facts = {
            "addresses": "<br>".join(f"`{address}`" for address in corpus["addresses"]),
            "revision": f"`{corpus['revision']}`",
            "languages": f"{len(corpus['sizes'])}, of {len(known)} with a size: about {size_text(int(sum(known)))}",
            "figures from": corpus["origin"],
            "probed": asked(source=name),
        }
        parts.append(_table(("", ""), facts.items()))
    parts.append("## Models of presets and profiles")
    models = (
        (
            f"[{model['repository']}](https://huggingface.co/{model['repository']})",
            f"`{model['revision']}`" if model["revision"] else "not pinned",
            ", ".join(f"`{user}`" for user in model["used_by"]),
            asked([f"https://huggingface.co/{model['repository']}/resolve/{model['revision'] or 'main'}/config.json"]),
        )
        for model in value["models"]
    )
    parts.append(_table(("repository", "revision", "read by", "probed"), models))
    return "\n\n".join(parts) + "\n"


def _file_rows(files: Iterable[Mapping[str, Any]], asked: Any) -> Iterator[tuple[str, ...]]:
    """Yield the cells of files; many of one folder at one place share a row."""
    for (folder, _), group in groupby(files, lambda file: (file["path"].rpartition("/")[0], _places(file))):
        members = list(group)
        for several in [members] if len(members) > _ALIKE else [[member] for member in members]:
            first, sizes = several[0], [file["size"] for file in several]
            name = f"`{first['path']}`" if len(several) == 1 else f"`{folder}/*`, {len(several)} files"
            addresses = first["addresses"] if len(several) == 1 else [f"{place}/*" for place in _places(first)]
            known = None if None in sizes else sum(sizes)
            kinds = [kind for kind in ("sha256", "md5") if all(file[kind] for file in several)]
            checksum = f"`{first[kinds[0]]}`" if len(several) == 1 and kinds else " and ".join(kinds)
            yield (
                name,
                "<br>".join(f"<{address}>" if address.startswith("http") else f"`{address}`" for address in addresses)
                or "by hand",
                "—" if known is None else size_text(known),
                f"{kinds[0]} {checksum}" if len(several) == 1 and kinds else checksum or "—",
                first["origin"],
                asked(address for file in several for address in file["addresses"]) if addresses else "—",
            )


def _places(file: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(address.rpartition("/")[0] for address in file["addresses"])


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(rows: Iterable[Any], indent: str = "      ", close: str = "    ") -> str:
    lines = [f"{indent}{_line(row)}" for row in rows]
    return f"\n{_joined(lines)}\n{close}" if lines else ""


def _joined(parts: Iterable[str]) -> str:
    return ",\n".join(parts)


def probed() -> dict[str, Any]:
    """Return what was printed where there was a network; empty where nobody has asked."""
    return dict(json.loads(PROBED.read_bytes())) if PROBED.exists() else {}


if __name__ == "__main__":
    passport = table()
    TABLE.write_text(as_json(passport), encoding="utf-8")
    DOCUMENT.write_text(page(passport, probed()), encoding="utf-8")
