"""Measures under the task's tie rule, official scorers that do otherwise, and averages over tasks."""
