"""Data: formats, corpora, training pairs, fetching, contamination, the embedded world; faults name file and line."""
