"""Authenticator: maps a presented token or certificate to an identity."""

from __future__ import annotations

from collections.abc import Mapping

from tidemark.access.certificates import names_in
from tidemark.access.identity import MAX_TOKEN_BYTES, Identity, KnownCaller, Presented
from tidemark.access.jwt_tokens import JwtTokens
from tidemark.access.tokens import hash_token
from tidemark.errors import UnauthenticatedError

_NO_ROLES: frozenset[str] = frozenset()


class Authenticator:
    """Credentials of one access file.

    tokens, certificates, subjects  map to the principal's name
    roles                           by principal
    jwt                             None: JSON Web Tokens are not accepted
    """

    def __init__(
        self,
        *,
        tokens: Mapping[str, str],
        certificates: Mapping[str, str],
        subjects: Mapping[str, str],
        roles: Mapping[str, frozenset[str]],
        jwt: JwtTokens | None,
    ) -> None:
        self._tokens = tokens
        self._certificates = certificates
        self._subjects = subjects
        self._roles = roles
        self._jwt = jwt

    def identify(self, presented: Presented) -> KnownCaller:
        """Return the identity; a token has precedence over a certificate. Raises UnauthenticatedError if unknown."""
        if presented.token is not None:
            return self._of_token(presented.token)
        if presented.certificate is not None:
            for name in names_in(presented.certificate):
                if name in self._certificates:
                    return self._known(self._certificates[name])
            raise UnauthenticatedError("no principal of the access file has a name of the client's certificate")
        raise UnauthenticatedError("a token is required: send the header `authorization: Bearer …`")

    @property
    def principals(self) -> frozenset[str]:
        """Return the names of the file's principals."""
        return frozenset(self._roles)

    def roles_of(self, principal: str) -> frozenset[str]:
        """Return the roles of *principal* in the file; an empty set for an unknown principal."""
        return self._roles.get(principal, _NO_ROLES)

    def _of_token(self, token: str) -> KnownCaller:
        if not token or not token.isascii() or len(token) > MAX_TOKEN_BYTES:
            raise UnauthenticatedError(
                f"the header authorization must be `Bearer` and at most {MAX_TOKEN_BYTES} ASCII characters"
            )
        principal = self._tokens.get(hash_token(token))
        if principal is not None:
            return self._known(principal)
        if self._jwt is None or token.count(".") != 2:
            raise UnauthenticatedError("the token is unknown")
        claims = self._jwt.check(token)
        principal = self._subjects.get(claims.subject)
        if principal is None:
            return KnownCaller(Identity(f"jwt:{claims.subject}", claims.roles), claims.expires)
        return KnownCaller(Identity(principal, self.roles_of(principal) | claims.roles), claims.expires)

    def _known(self, principal: str) -> KnownCaller:
        return KnownCaller(Identity(principal, self.roles_of(principal)), float("inf"))
