"""Paired tests, resampling, power, rank intervals."""
