"""Settings of all services and of the client: their classes by name, reading them at a start, sources of values.

Imports no service: the registry holds only names of modules and classes.
"""
