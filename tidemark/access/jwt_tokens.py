"""Verification of JSON Web Tokens (RFC 7519) with the keys of a JWKS file (RFC 7517), by PyJWT."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jwt

from tidemark.access.jwt_options import JwtOptions
from tidemark.errors import AccessFileError, UnauthenticatedError

_MOST_REMEMBERED = 10_000
_REQUIRED = ("exp", "sub", "iss", "aud")


class Claims(NamedTuple):
    """Claims of a valid token. expires: Unix time in seconds, including the leeway."""

    subject: str
    roles: frozenset[str]
    expires: float


class JwtTokens:
    """Verifier of tokens. Raises AccessFileError if the JWKS file cannot be used."""

    def __init__(self, options: JwtOptions) -> None:
        self._options = options
        self._keys = _read_keys(options.jwks_file)
        self._remembered: dict[str, Claims] = {}

    def check(self, token: str) -> Claims:
        """Return the claims of *token*. Raises UnauthenticatedError if it is invalid, expired or not yet valid."""
        claims = self._remembered.get(token)
        if claims is None:
            claims = self._verify(token)
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[token] = claims
        if claims.expires <= time.time():
            raise UnauthenticatedError("the token has expired")
        return claims

    def _verify(self, token: str) -> Claims:
        options = self._options
        try:
            content = jwt.decode(
                token,
                self._key(jwt.get_unverified_header(token)),
                algorithms=list(options.algorithms),
                audience=options.audience,
                issuer=options.issuer,
                leeway=options.leeway_s,
                options={"require": list(_REQUIRED), "strict_aud": False},
            )
            return Claims(_subject(content), _roles(content, options.roles_claim), content["exp"] + options.leeway_s)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise UnauthenticatedError(f"the token is not accepted: {_description(error)}") from None

    def _key(self, header: Mapping[str, Any]) -> jwt.PyJWK:
        name = header.get("kid")
        if name is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        found = self._keys.get(name) if isinstance(name, str) else None
        if found is None:
            raise jwt.InvalidKeyError("no key with this kid")
        return found


def _description(error: Exception) -> str:
    """Describe the error without any content of the token."""
    known = {
        jwt.ExpiredSignatureError: "it has expired",
        jwt.ImmatureSignatureError: "it is not valid yet",
        jwt.InvalidAudienceError: "its audience is not the one in the access file",
        jwt.InvalidIssuerError: "its issuer is not the one in the access file",
        jwt.InvalidAlgorithmError: "its algorithm is not allowed",
        jwt.InvalidKeyError: "the JWKS file has no key for it",
        jwt.InvalidSignatureError: "its signature is invalid",
        jwt.MissingRequiredClaimError: "a required claim is missing",
    }
    return next((text for kind, text in known.items() if isinstance(error, kind)), "it is malformed")


def _subject(content: Mapping[str, Any]) -> str:
    subject = content["sub"]
    if not isinstance(subject, str) or not subject or not subject.isprintable() or len(subject) > 255:
        raise ValueError("sub")
    return subject


def _roles(content: Mapping[str, Any], claim: str) -> frozenset[str]:
    roles = content.get(claim, [])
    if isinstance(roles, str):
        roles = roles.split()
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        raise ValueError(claim)
    return frozenset(roles)


def _read_keys(path: Path) -> dict[str, jwt.PyJWK]:
    try:
        keys = jwt.PyJWKSet.from_json(path.read_text("utf-8")).keys
    except OSError as error:
        raise AccessFileError(f"{path}: {error.strerror}", path=str(path)) from None
    except (jwt.PyJWTError, ValueError, AttributeError, KeyError, TypeError):
        raise AccessFileError(f"{path} is not a JSON Web Key Set with a supported key", path=str(path)) from None
    named = {key.key_id or "": key for key in keys if key.public_key_use != "enc"}
    if any(key.key_type == "oct" for key in keys):
        raise AccessFileError(f"{path} contains a symmetric key (kty oct): use only public keys", path=str(path))
    if not named or (len(named) > 1 and "" in named):
        raise AccessFileError(f"{path}: each key needs a kid unless there is exactly one key", path=str(path))
    return named
