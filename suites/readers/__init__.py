"""Readers of files that one suite or release has; conventions are those of `bench.data.formats`."""
