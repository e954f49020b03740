"""The query service: `tidemark.read` over HTTP. It reads the store's files itself, up to the watermark."""
