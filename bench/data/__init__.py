"""Reading data: text files line by line, BEIR folders, TREC files, ir_datasets; every fault told with file and line."""
