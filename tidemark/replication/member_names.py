"""Identities of members: the name in the settings, and the random name of the directory."""

from __future__ import annotations


def identity_of(name: str, directory: str) -> str:
    """Return the identity of the member *name* with the directory of that random name."""
    return f"{name}.{directory}"


def folder_of(identity: str) -> str:
    """Return the random name of the member's directory. A copy of a directory has the same."""
    return identity.rpartition(".")[2]


def name_of(identity: str) -> str:
    """Return the name in the settings of the member with *identity*."""
    return identity.rpartition(".")[0]
