"""The packages' own tests, as CI runs them: from their folders, not installed.

`tests/methods/test_example_packages.py` tries what `test_conformance.py` of an installed package does.
"""

import sys
from pathlib import Path

collect_ignore_glob = ["*/tests/test_conformance.py"]

sys.path += [str(project.parent) for project in sorted(Path(__file__).parent.glob("*/pyproject.toml"))]
