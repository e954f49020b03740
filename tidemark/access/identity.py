"""Identity of a caller, the credentials it presented, and when the identity expires."""

from __future__ import annotations

from typing import NamedTuple

MAX_TOKEN_BYTES = 8_192
_BEARER = "bearer "


class Identity(NamedTuple):
    """An authenticated caller.

    name   of a principal of the access file; `jwt:` and the subject if the file has no principal with this JWT subject
    roles  union of the principal's and the token's roles
    """

    name: str
    roles: frozenset[str]


class KnownCaller(NamedTuple):
    """An identity and its expiry. expires: Unix time in seconds at which the caller must authenticate again."""

    identity: Identity
    expires: float


class Presented(NamedTuple):
    """Credentials of a request.

    token        the text after `Bearer ` in the header `authorization`; None: no such header
    certificate  client certificate, DER, verified by the transport; None: none was presented
    """

    token: str | None
    certificate: bytes | None

    @classmethod
    def of(cls, authorization: str | bytes | None, certificate: bytes | None) -> Presented:
        """Parse the header *authorization*. A header that is not a bearer token becomes an empty token."""
        if authorization is None:
            return cls(None, certificate)
        text = authorization.decode("latin-1") if isinstance(authorization, bytes) else authorization
        is_bearer = text[: len(_BEARER)].lower() == _BEARER
        return cls(text[len(_BEARER) :].strip() if is_bearer else "", certificate)
