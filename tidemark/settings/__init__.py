"""Settings of all services and of the client: where their classes are, how a door reads one, where a value is from.

Knows the classes by name only: a service stays in its own room.
"""
