"""Queues → messages: what may be read, up to the watermark. Plain functions over files and arrays; no HTTP."""
