"""retrieval-bench: pretraining methods for multilingual dense retrieval, compared under one protocol."""
