"""The clients, each one class. Without a remark, a client has its default settings."""
