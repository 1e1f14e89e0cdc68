"""From what was typed to stages, and from artefacts to result files."""
