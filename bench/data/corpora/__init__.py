"""Pretraining corpora: documents, sentences, tokenizers, tokenised shards, sampling."""
