"""Readers of files that one suite or one release has; those of general formats lie in the harness.

Conventions: `path` is a file, plain or compressed, that is not opened before the source is read; `name` is what
messages call the source, the file's name where empty.
"""
