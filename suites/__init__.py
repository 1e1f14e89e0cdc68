"""The benchmarks, one module per suite, each a plugin; none imports torch."""
