"""The parts of the conformance kit (`bench.checks`): what is tried, on what, and how it is told."""
