"""Measures, significance, comparison, results, drawings."""
