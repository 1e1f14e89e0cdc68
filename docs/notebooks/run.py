"""Execute the notebooks, each in an empty folder, and return them as Markdown with what they show: `make docs-site`.

Alone (`python docs/notebooks/run.py`) it says how long each took. A cell that raises, or warns, fails the build.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
NOTEBOOKS = sorted(HERE.glob("*.ipynb"))


def executed(path: Path) -> nbformat.NotebookNode:
    """Run every cell in an empty folder; the command `bench` is that of this interpreter."""
    notebook = nbformat.read(path, as_version=4)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory(prefix="bench-notebook-") as folder:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
    outputs = [
        output for cell in notebook.cells for output in cell.get("outputs", ()) if output.get("name") == "stderr"
    ]
    warned = next((output.text for output in outputs if "Warning" in output.text), None)
    if warned:
        raise SystemExit(f"{path.name}: found a warning, expected none:\n{warned}")
    return notebook


def shown(output: nbformat.NotebookNode) -> str:
    """Return an output as Markdown: a drawing or a table as it is, text in a block; progress is left out."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        return f'<div class="drawing">{"".join(data["image/svg+xml"])}</div>'
    if "text/html" in data:
        html = "".join(data["text/html"])
        return "\n".join(line.strip() for line in html[html.find("<table") :].splitlines())
    text = "".join(output.get("text", "") if output.get("name") != "stderr" else "")
    text = text or ("".join(data.get("text/plain", "")) if output["output_type"] == "execute_result" else "")
    return f"```text\n{text.rstrip()}\n```" if text.strip() else ""


def page(path: Path) -> str:
    """Return a notebook as a page."""
    parts = []
    for cell in executed(path).cells:
        parts.append(cell.source if cell.cell_type == "markdown" else f"```python\n{cell.source}\n```")
        parts += filter(None, map(shown, cell.get("outputs", ())))
    return "\n\n".join(parts)


if __name__ == "__main__":
    for one in NOTEBOOKS:
        began = time.monotonic()
        size = len(page(one))
        sys.stdout.write(f"{one.stem}: {size:,} characters in {time.monotonic() - began:.0f} s\n")
