"""Identity: who somebody is; Presented: what they show for it; Known: how long that is good."""

from __future__ import annotations

from typing import NamedTuple

MAX_TOKEN_BYTES = 8_192
_BEARER = "bearer "


class Identity(NamedTuple):
    """name   of a principal of the access file; `jwt:` and the subject, where a JSON Web Token's subject is not in it
    roles  those of the principal and those of the token
    """

    name: str
    roles: frozenset[str]


class Known(NamedTuple):
    """expires: Unix time, seconds, from which on the identity must be shown again."""

    identity: Identity
    expires: float


class Presented(NamedTuple):
    """token        what stands behind `Bearer ` in the header `authorization`; None: no such header
    certificate  of the client, DER, whose CA the transport has checked; None: it showed none
    """

    token: str | None
    certificate: bytes | None

    @classmethod
    def of(cls, authorization: str | bytes | None, certificate: bytes | None) -> Presented:
        """authorization: the header as it came; an empty token stands for one that is no bearer token."""
        if authorization is None:
            return cls(None, certificate)
        text = authorization.decode("latin-1") if isinstance(authorization, bytes) else authorization
        is_bearer = text[: len(_BEARER)].lower() == _BEARER
        return cls(text[len(_BEARER) :].strip() if is_bearer else "", certificate)
