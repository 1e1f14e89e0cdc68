"""Every promise of a method, tried one by one (`pytest`, or `bench plugin check condenser`)."""

from bench.testing import conformance

test_conformance = conformance("condenser")
