"""Every promise, tried one by one (`pytest`, or `bench plugin check title-body --set prepare.titles=true`)."""

from bench.testing import conformance

test_conformance = conformance("title-body", sets=["prepare.titles=true"])
