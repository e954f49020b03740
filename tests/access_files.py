"""Access files, tokens and key sets for tests. The keys are generated anew in each run."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from tidemark.access.tokens import hash_token, make_token

ISSUER = "https://login.example"
AUDIENCE = "tidemark"


class AccessFolder:
    """An access file that a test writes piece by piece."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "access.toml"
        self._principals: list[str] = []
        self._rules: list[str] = []
        self._jwt = ""
        self.write()

    def principal(self, name: str, **more: Any) -> str:
        """Add a principal with a new token, and return the token. *more* holds further TOML keys, as JSON values."""
        token = make_token()
        given = {"name": name, "token_sha256": [hash_token(token)], **more}
        self._principals.append("[[principal]]\n" + _lines(given))
        self.write()
        return token

    def forget(self, name: str) -> None:
        """Remove the principal, and the rules that name it."""
        self._principals = [text for text in self._principals if f'name = "{name}"' not in text]
        self._rules = [text for text in self._rules if f'"{name}"' not in text]
        self.write()

    def rule(self, principal: str, actions: list[str], *resources: str, **more: Any) -> None:
        """Add a rule that allows *actions* to *principal*."""
        given = {"principals": [principal], "actions": actions, "resources": list(resources), **more}
        self._rules.append("[[rule]]\n" + _lines(given))
        self.write()

    def jwt(self, issuer: Issuer, **more: Any) -> None:
        """Accept JSON Web Tokens of *issuer*."""
        issuer.write(self.path.parent / "jwks.json")
        given = {"jwks_file": "jwks.json", "issuer": ISSUER, "audience": AUDIENCE, **more}
        self._jwt = "[jwt]\n" + _lines(given)
        self.write()

    def write(self) -> None:
        """Replace the file atomically, as an editor does."""
        new = self.path.with_suffix(".new")
        new.write_text("\n".join(["version = 1\n", self._jwt, *self._principals, *self._rules]))
        new.rename(self.path)


class Issuer:
    """A token issuer that signs with the key *kid*."""

    def __init__(self, kid: str = "one") -> None:
        self.kid = kid
        self.key = ec.generate_private_key(ec.SECP256R1())

    @property
    def jwk(self) -> dict[str, Any]:
        """Return the public key."""
        return {**ECAlgorithm.to_jwk(self.key.public_key(), as_dict=True), "kid": self.kid, "use": "sig"}

    def write(self, path: Path) -> None:
        """Write a key set that contains only this key."""
        path.write_text(json.dumps({"keys": [self.jwk]}))

    def token(self, subject: str = "alice", **claims: Any) -> str:
        """Return a token that is valid for a minute. *claims* replace the defaults; None removes a claim."""
        content = {"sub": subject, "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 60, **claims}
        given = {name: value for name, value in content.items() if value is not None}
        return jwt.encode(given, self.key, algorithm="ES256", headers={"kid": self.kid})


def _lines(given: dict[str, Any]) -> str:
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items())
