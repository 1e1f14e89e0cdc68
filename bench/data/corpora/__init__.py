"""Pretraining corpora: documents, sentences, tokenizers, tokenised shards, sampling."""

SMALLEST_VOCABULARY = 512
"""Of a tokenizer trained here: special tokens, 256 bytes, and room for letters and merges."""
