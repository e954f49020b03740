"""Static tokens: 256 random bits, so that one hash without salt or rounds keeps them (OWASP: high-entropy secrets)."""

from __future__ import annotations

import hashlib
import secrets

_PREFIX = "tidemark_"  # for programs that look for secrets in other people's repositories
_RANDOM_BYTES = 32


def make_token() -> str:
    """A new one."""
    return _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def hash_token(token: str) -> str:
    """SHA-256 in hexadecimal digits: what the access file has of it."""
    return hashlib.sha256(token.encode()).hexdigest()
