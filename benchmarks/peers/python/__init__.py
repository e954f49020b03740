"""The rows python_*: Tidemark's Python client beside other Python clients, each with a real server.

Modules that a client's process imports (program, loops, clients) need only the standard library and that client,
because they run in an environment without Tidemark.
"""
