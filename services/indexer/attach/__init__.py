"""Follows a running broker's log, read-only, and publishes a watermark below which the broker has dispatched."""
