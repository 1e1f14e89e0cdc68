"""Systems as expressions: what stands in a row of a table, and the stages that make its ranking."""
