"""State that all routes share: the store, the watcher of the watermark, metrics, the client of the writer."""
