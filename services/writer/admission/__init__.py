"""Rules for an append, checked before anything is written. Opens no file."""
