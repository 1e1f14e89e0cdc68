"""Compare the results of several systems."""
