"""Backups of a store: taken while it runs, verified, restored. In them is what no log can make again."""
