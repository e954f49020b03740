"""JwtOptions: the section [jwt] of an access file."""

from __future__ import annotations

import enum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class Algorithm(enum.StrEnum):
    """Asymmetric signature algorithms: the service needs only public keys."""

    RS256 = "RS256"
    RS384 = "RS384"
    RS512 = "RS512"
    PS256 = "PS256"
    PS384 = "PS384"
    PS512 = "PS512"
    ES256 = "ES256"
    ES384 = "ES384"
    ES512 = "ES512"
    EDDSA = "EdDSA"


class JwtOptions(BaseModel):
    """How to verify JSON Web Tokens.

    jwks_file    the issuer's public keys, a JSON Web Key Set; relative to the access file; read again when it changes
    roles_claim  name of the claim with the roles: a list of strings, or one string separated by blanks
    leeway_s     tolerated clock difference, seconds
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    jwks_file: Path
    issuer: str = Field(min_length=1)
    audience: str = Field(min_length=1)
    algorithms: tuple[Algorithm, ...] = Field((Algorithm.RS256, Algorithm.ES256), min_length=1)
    roles_claim: str = "roles"
    leeway_s: int = Field(30, ge=0, le=600)
