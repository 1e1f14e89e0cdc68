"""What pages are made from: boards with their tests, columns, texts, drawings, files."""
