"""The query facade: `tidemark.read` over HTTP, one hop: it reads the store's files itself, up to the watermark."""
