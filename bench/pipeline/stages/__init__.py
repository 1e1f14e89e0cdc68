"""One module per verb, each a pure function from files to files that knows nothing of the command line."""
