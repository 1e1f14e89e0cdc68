"""What everything rests on: the data model, encoder configs, errors, files, messages, the workspace of a stage."""
