"""Topics of the store: their table and the rules for their names."""
