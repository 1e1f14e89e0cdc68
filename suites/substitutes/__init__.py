"""Substitutes: real data over another pool, or for another task, than the benchmark that each of them stands for.

Their names are their own, since no number is comparable with a published one; files lie in BEIR's layout.
"""
