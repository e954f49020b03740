"""Backups of a store: taken while it runs, verified and restored. A backup has all files that cannot be rebuilt."""
