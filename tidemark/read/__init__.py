"""Reading of messages from queues, up to the watermark. Plain functions over files and arrays; must not import HTTP."""
