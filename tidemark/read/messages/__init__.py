"""Messages from checked records: bodies, JSON, Arrow columns."""
