"""Systems as expressions: what a row of a table is about, and the stages that make its ranking."""
