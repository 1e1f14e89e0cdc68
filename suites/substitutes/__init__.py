"""Substitutes: real data over another pool, or for another task, than the benchmark that each of them stands for.

They carry names of their own, since no number of theirs is comparable with a published one. One module a family, by the
benchmark that it stands for; what they share is in `suites.substitutes.common`.
"""
