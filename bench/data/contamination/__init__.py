"""Which texts of a test occur in training texts."""
