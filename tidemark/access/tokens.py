"""Static tokens of 256 random bits: enough entropy to store a plain hash without salt or rounds (OWASP)."""

from __future__ import annotations

import hashlib
import secrets

_PREFIX = "tidemark_"  # lets secret scanners recognise leaked tokens
_RANDOM_BYTES = 32


def make_token() -> str:
    """Return a new random token."""
    return _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def hash_token(token: str) -> str:
    """Return the SHA-256 of *token* in hexadecimal, as the access file stores it."""
    return hashlib.sha256(token.encode()).hexdigest()
