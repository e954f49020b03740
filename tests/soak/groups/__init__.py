"""The consumer process of a soak: members of several groups, each of which records its messages."""
