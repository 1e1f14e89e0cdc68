"""Readers of files, plain or compressed, which are opened when read; `name` is what messages call them."""
