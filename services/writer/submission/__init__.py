"""Appends on their way from any interface to the log: rights, limits, times, spans. Knows no wire."""
