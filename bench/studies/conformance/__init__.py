"""The conformance kit: what every plugin promises, one check a promise (`bench.studies.conformance.checks`)."""
