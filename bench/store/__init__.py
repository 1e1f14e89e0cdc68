"""The store of stage outputs, the graph of stages, housekeeping and executors."""
