"""Access files, tokens and key sets for tests; keys are made anew each time."""

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
    """A folder with an access file that is written a piece at a time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "access.toml"
        self._principals: list[str] = []
        self._rules: list[str] = []
        self._jwt = ""
        self.write()

    def principal(self, name: str, **more: Any) -> str:
        """A principal with a new token, which is returned. more: TOML's values as JSON has them, too."""
        token = make_token()
        given = {"name": name, "token_sha256": [hash_token(token)], **more}
        self._principals.append("[[principal]]\n" + _lines(given))
        self.write()
        return token

    def forget(self, name: str) -> None:
        """A principal is taken out, and rules that name it."""
        self._principals = [text for text in self._principals if f'name = "{name}"' not in text]
        self._rules = [text for text in self._rules if f'"{name}"' not in text]
        self.write()

    def rule(self, principal: str, actions: list[str], *resources: str, **more: Any) -> None:
        """More that a principal may."""
        given = {"principals": [principal], "actions": actions, "resources": list(resources), **more}
        self._rules.append("[[rule]]\n" + _lines(given))
        self.write()

    def jwt(self, issuer: Issuer, **more: Any) -> None:
        """JSON Web Tokens of *issuer* are taken."""
        issuer.write(self.path.parent / "jwks.json")
        given = {"jwks_file": "jwks.json", "issuer": ISSUER, "audience": AUDIENCE, **more}
        self._jwt = "[jwt]\n" + _lines(given)
        self.write()

    def write(self) -> None:
        """Replace the file at once, as an editor does."""
        new = self.path.with_suffix(".new")
        new.write_text("\n".join(["version = 1\n", self._jwt, *self._principals, *self._rules]))
        new.rename(self.path)


class Issuer:
    """Somebody who signs tokens with a key of the name *kid*."""

    def __init__(self, kid: str = "one") -> None:
        self.kid = kid
        self.key = ec.generate_private_key(ec.SECP256R1())

    @property
    def jwk(self) -> dict[str, Any]:
        """The public key."""
        return {**ECAlgorithm.to_jwk(self.key.public_key(), as_dict=True), "kid": self.kid, "use": "sig"}

    def write(self, path: Path) -> None:
        """A key set of this key alone."""
        path.write_text(json.dumps({"keys": [self.jwk]}))

    def token(self, subject: str = "alice", **claims: Any) -> str:
        """Good for a minute, unless *claims* say otherwise; None leaves one out."""
        content = {"sub": subject, "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 60, **claims}
        given = {name: value for name, value in content.items() if value is not None}
        return jwt.encode(given, self.key, algorithm="ES256", headers={"kid": self.kid})


def _lines(given: dict[str, Any]) -> str:
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items())
