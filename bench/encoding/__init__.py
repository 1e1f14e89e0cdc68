"""Texts to vectors: packed execution of transformers encoders, and the encoder of the harness on top of it."""
