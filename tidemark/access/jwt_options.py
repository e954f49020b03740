"""JwtOptions: the section [jwt] of an access file."""

from __future__ import annotations

import enum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class Algorithm(enum.StrEnum):
    """Signatures by a private key that this side never has."""

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
    """jwks_file    public keys of the issuer, JSON Web Key Set; relative to the access file; read again when it changes
    roles_claim  a list of texts, or one text with blanks between
    leeway_s     that clocks may differ by, seconds
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    jwks_file: Path
    issuer: str = Field(min_length=1)
    audience: str = Field(min_length=1)
    algorithms: tuple[Algorithm, ...] = Field((Algorithm.RS256, Algorithm.ES256), min_length=1)
    roles_claim: str = "roles"
    leeway_s: int = Field(30, ge=0, le=600)
