"""AccessFile: principals and rules in TOML (docs/security.md). Any fault rejects the whole file."""

from __future__ import annotations

import ipaddress
import re
import stat
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from tidemark.access.authenticator import Authenticator
from tidemark.access.jwt_options import JwtOptions
from tidemark.access.jwt_tokens import JwtTokens
from tidemark.access.loaded import LoadedAccess, Rates
from tidemark.access.right import Action
from tidemark.access.rule import Network, Pattern, Policy, Rule
from tidemark.errors import AccessFileError
from tidemark.settings.reloaded_files import Stamp, stamps_of

_HASH = re.compile(r"[0-9a-f]{64}")
_ALL = "All"  # of the actions
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def _require_hash(text: str) -> str:
    if not _HASH.fullmatch(text):
        raise ValueError("a token hash has 64 lower-case hexadecimal digits; `tidemark access token` creates both")
    return text


def _require_pattern(text: str) -> str:
    Pattern.parse(text)
    return text


def _require_action(text: str) -> str:
    if text != _ALL and text not in tuple(Action):
        raise ValueError(f"the actions are {', '.join(Action)} and {_ALL}")
    return text


def _network(text: str) -> Network:
    return ipaddress.ip_network(text)


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_min_length=1)


class _Principal(_Strict):
    """A principal of the file.

    token_sha256     hashes of static tokens; several are valid at once while a token is being replaced
    certificates     certificate subjects, or `dns:…`, `uri:…`, `email:…`
    jwt_subjects     subjects of JSON Web Tokens
    max_requests_per_s, max_append_bytes_per_s    override the limits of the service; 0: no limit
    """

    name: str = Field(max_length=255, pattern=r"^[A-Za-z0-9._@/-]+$")
    token_sha256: tuple[Annotated[str, AfterValidator(_require_hash)], ...] = ()
    certificates: tuple[str, ...] = ()
    jwt_subjects: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    max_requests_per_s: int | None = Field(None, ge=0)
    max_append_bytes_per_s: int | None = Field(None, ge=0)


class _Rule(_Strict):
    """A rule of the file. sources: networks such as 10.0.0.0/8"""

    principals: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    resources: tuple[Annotated[str, AfterValidator(_require_pattern)], ...] = Field(min_length=1)
    actions: tuple[Annotated[str, AfterValidator(_require_action)], ...] = Field(min_length=1)
    decision: Literal["Allow", "Deny"] = "Allow"
    sources: tuple[Annotated[str, AfterValidator(lambda text: str(_network(text)))], ...] = ()

    @model_validator(mode="after")
    def _names_callers(self) -> Self:
        if not self.principals and not self.roles:
            raise ValueError("a rule must name at least one principal or role")
        return self

    @property
    def rule(self) -> Rule:
        actions = frozenset(Action) if _ALL in self.actions else frozenset(Action(one) for one in self.actions)
        return Rule(
            frozenset(self.principals),
            frozenset(self.roles),
            tuple(Pattern.parse(text) for text in self.resources),
            actions,
            tuple(_network(text) for text in self.sources),
            self.decision == "Deny",
        )


class _Content(_Strict):
    version: Literal[1]
    jwt: JwtOptions | None = None
    principal: tuple[_Principal, ...] = ()
    rule: tuple[_Rule, ...] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for what, names in (
            ("principal", [principal.name for principal in self.principal]),
            ("token_sha256", [one for principal in self.principal for one in principal.token_sha256]),
            ("certificate", [one for principal in self.principal for one in principal.certificates]),
            ("jwt_subject", [one for principal in self.principal for one in principal.jwt_subjects]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{what} {twice[0]} occurs more than once")
        for line in self._unknown():
            raise ValueError(line)
        return self

    def _unknown(self) -> Iterator[str]:
        """Yield an error for each undefined name: a typing error must not disable a rule, least of all a Deny rule."""
        names = {principal.name for principal in self.principal} | {"*"}
        roles = {role for principal in self.principal for role in principal.roles}
        for at, rule in enumerate(self.rule):
            for name in rule.principals:
                if name not in names and not (self.jwt is not None and name.startswith("jwt:")):
                    yield f"rule.{at}: principal {name} is not defined"
            for role in rule.roles:
                if role not in roles and self.jwt is None:
                    yield f"rule.{at}: no principal has the role {role}"
        if self.jwt is None and any(principal.jwt_subjects for principal in self.principal):
            yield "jwt_subjects requires a section [jwt]"


@dataclass(frozen=True)
class AccessFile:
    """The access file at *path* and the JWKS file that it names."""

    path: Path

    def load(self) -> LoadedAccess:
        """Read and check both files. Raises AccessFileError, whose message contains no secret."""
        content = self._content()
        options = content.jwt and content.jwt.model_copy(
            update={"jwks_file": self._relative_to_file(content.jwt.jwks_file)}
        )
        principals = content.principal
        authenticator = Authenticator(
            tokens={one: principal.name for principal in principals for one in principal.token_sha256},
            certificates={one: principal.name for principal in principals for one in principal.certificates},
            subjects={one: principal.name for principal in principals for one in principal.jwt_subjects},
            roles={principal.name: frozenset(principal.roles) for principal in principals},
            jwt=None if options is None else JwtTokens(options),
        )
        rates = {
            principal.name: Rates(principal.max_requests_per_s, principal.max_append_bytes_per_s)
            for principal in principals
        }
        return LoadedAccess(authenticator, Policy(one.rule for one in content.rule), rates)

    def stamps(self) -> tuple[Stamp, ...]:
        """Return stamps that differ after the access file or the JWKS file has changed."""
        try:
            jwt = self._content().jwt
        except AccessFileError:
            jwt = None
        return stamps_of((self.path, None if jwt is None else self._relative_to_file(jwt.jwks_file)))

    def _relative_to_file(self, path: Path) -> Path:
        return self.path.parent / path

    def _content(self) -> _Content:
        try:
            if self.path.stat().st_mode & _OTHERS_MAY_WRITE:
                raise AccessFileError(f"{self.path} is writable by others: run chmod go-w", path=str(self.path))
            text = self.path.read_text("utf-8")
        except OSError as error:
            raise AccessFileError(f"{self.path}: {error.strerror}", path=str(self.path)) from None
        except UnicodeDecodeError:
            raise AccessFileError(f"{self.path} is not UTF-8 text", path=str(self.path)) from None
        try:
            return _Content.model_validate(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise AccessFileError(f"{self.path} is not valid TOML: {error}", path=str(self.path)) from None
        except ValidationError as error:
            raise AccessFileError(f"{self.path}: {_faults(error)}", path=str(self.path)) from None


def _faults(error: ValidationError) -> str:
    """Format *error* as locations and messages, without the values, because a misplaced value may be a secret."""
    lines: list[str] = []
    faults = error.errors(include_url=False, include_input=False)
    for fault in faults:
        if fault["type"] == "too_short" and any(_is_within(other["loc"], fault["loc"]) for other in faults):
            continue  # the list is empty only without its invalid items
        where: list[Any] = list(fault["loc"])
        lines.append(
            ": ".join([*([".".join(map(str, where))] if where else []), fault["msg"].removeprefix("Value error, ")])
        )
    return "; ".join(lines)


def _is_within(inner: tuple[int | str, ...], outer: tuple[int | str, ...]) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer
