"""Following a living broker's log, read-only: what it has dispatched, checked record by record, becomes a watermark."""
