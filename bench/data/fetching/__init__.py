"""Official files: download, unpack, verify, and find them on disk."""
