"""What everything rests on: the data model, the encoder contract, errors, files, messages, the workspace of a stage."""
