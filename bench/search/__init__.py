"""Finding the best documents: the rule that orders them, and exact search over vectors and candidates."""
