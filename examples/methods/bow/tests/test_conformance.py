"""Every promise of a method, tried one by one (`pytest`, or `bench plugin check bow`)."""

from bench.testing import conformance

test_conformance = conformance("bow")
