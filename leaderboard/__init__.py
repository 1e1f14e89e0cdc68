"""Reads results and their bundles, nothing else: tables today, a static site later."""
