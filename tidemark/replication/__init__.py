"""Replication of one store on several members: the rules, as state machines without I/O."""
