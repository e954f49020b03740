"""Small files that cannot be derived from the log, and their checked copies."""
