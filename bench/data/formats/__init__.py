"""Readers of files in known layouts.

Conventions: `path` is a file, plain or compressed, that is not opened before the source is read; `name` is what
messages call the source, the file's name where empty.
"""
