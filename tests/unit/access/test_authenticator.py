"""Authentication of tokens and certificates."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest

from tests.access_files import AUDIENCE, ISSUER, AccessFolder, Issuer
from tests.certificates import Authority
from tidemark.access.access_file import AccessFile
from tidemark.access.authenticator import Authenticator
from tidemark.access.identity import MAX_TOKEN_BYTES, Identity, Presented
from tidemark.errors import UnauthenticatedError

Identify = Callable[[Presented], Identity]


@pytest.fixture
def folder(tmp_path: Path) -> AccessFolder:
    """Return a folder without principals."""
    return AccessFolder(tmp_path)


def loaded(folder: AccessFolder) -> Authenticator:
    """Load the file as it is now."""
    return AccessFile(folder.path).load().authenticator


def refused(folder: AccessFolder, token: str | None) -> str:
    """Return the reason of the refusal; it never contains the token."""
    with pytest.raises(UnauthenticatedError) as told:
        loaded(folder).identify(Presented(token, None))
    assert not token or token not in told.value.message
    return told.value.message


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (None, None),
        ("Bearer x", "x"),
        ("bearer  x ", "x"),
        (b"Bearer x", "x"),
        ("Basic x", ""),
        ("Bearer", ""),
        ("", ""),
    ],
)
def test_a_token_is_read_from_a_bearer_header_only(header: str | bytes | None, token: str | None) -> None:
    """Another scheme is not treated as a missing header: it is refused, also with a valid certificate."""
    assert Presented.of(header, None).token == token


@pytest.mark.parametrize("token", ["", "nobody's", "tidemark_x", "a.b.c", "ä", "x" * (MAX_TOKEN_BYTES + 1)])
def test_an_unknown_token_is_refused(folder: AccessFolder, token: str) -> None:
    folder.principal("orders")
    assert refused(folder, token)


def test_a_request_without_credentials_is_refused(folder: AccessFolder) -> None:
    """The error names the accepted credentials."""
    assert "a token is required" in refused(folder, None)


def test_both_tokens_are_valid_during_a_rotation(folder: AccessFolder) -> None:
    """At every moment of the rotation at least one token is valid."""
    from tidemark.access.tokens import hash_token, make_token

    old, new = make_token(), make_token()
    folder.principal("orders", token_sha256=[hash_token(old), hash_token(new)])
    found = [loaded(folder).identify(Presented(token, None)).identity.name for token in (old, new)]
    assert found == ["orders", "orders"]


def test_a_certificate_is_identified_by_subject_or_alternative_name(folder: AccessFolder, tmp_path: Path) -> None:
    """The name is an RFC 4514 subject, or an alternative name with its kind."""
    import ssl

    pair = Authority(tmp_path / "ca", "Good").issue("orders")
    der = ssl.PEM_cert_to_DER_cert(pair.cert.read_text())
    for name in ("CN=orders", "dns:localhost"):
        folder.principal(f"by-{len(name)}", certificates=[name])
        assert loaded(folder).identify(Presented(None, der)).identity.name == f"by-{len(name)}"
        folder.forget(f"by-{len(name)}")
    with pytest.raises(UnauthenticatedError, match="has a name of the client's certificate"):
        loaded(folder).identify(Presented(None, der))
    with pytest.raises(UnauthenticatedError):
        loaded(folder).identify(Presented(None, b"no certificate"))


def test_an_invalid_token_with_a_valid_certificate_is_refused(folder: AccessFolder, tmp_path: Path) -> None:
    """If a client presents both, only the token counts."""
    import ssl

    pair = Authority(tmp_path / "ca", "Good").issue("orders")
    folder.principal("orders", certificates=["CN=orders"])
    with pytest.raises(UnauthenticatedError, match="the token is unknown"):
        loaded(folder).identify(Presented("x", ssl.PEM_cert_to_DER_cert(pair.cert.read_text())))


def test_a_json_web_token_identifies_its_subject_and_roles(folder: AccessFolder) -> None:
    """A subject that the file names is that principal; any other subject cannot take a principal's name."""
    issuer = Issuer()
    folder.jwt(issuer)
    folder.principal("alice", roles=["own"], jwt_subjects=["alice@example"])
    authenticator = loaded(folder)
    by_name = authenticator.identify(Presented(issuer.token("alice@example", roles=["given"]), None))
    assert by_name.identity == Identity("alice", frozenset({"own", "given"}))
    stranger = authenticator.identify(Presented(issuer.token("alice", roles="a b"), None))
    assert stranger.identity == Identity("jwt:alice", frozenset({"a", "b"}))


@pytest.mark.parametrize(
    ("claims", "told"),
    [
        ({"exp": 1}, "expired"),
        ({"exp": None}, "a required claim is missing"),
        ({"nbf": 1 << 40}, "not valid yet"),
        ({"aud": "others"}, "its audience is not"),
        ({"aud": None}, "a required claim is missing"),
        ({"iss": "https://evil.example"}, "its issuer is not"),
        ({"sub": ""}, "malformed"),
        ({"sub": "a\nb"}, "malformed"),
        ({"roles": {"a": 1}}, "malformed"),
        ({"roles": [1]}, "malformed"),
    ],
)
def test_a_json_web_token_with_invalid_claims_is_refused(
    folder: AccessFolder, claims: dict[str, Any], told: str
) -> None:
    """The claims are checked even if the signature is valid."""
    issuer = Issuer()
    folder.jwt(issuer)
    assert told in refused(folder, issuer.token(**claims))


def test_a_token_signed_with_another_key_is_refused(folder: AccessFolder) -> None:
    """The token names a known key, or no key."""
    folder.jwt(Issuer("one"))
    assert "signature is invalid" in refused(folder, Issuer("one").token())
    assert "no key" in refused(folder, Issuer("two").token())


def test_a_token_signed_with_the_public_key_as_secret_is_refused(folder: AccessFolder) -> None:
    """RFC 8725, 2.1: neither HS256 with the public key as the secret nor `none` is accepted."""
    issuer = Issuer()
    folder.jwt(issuer)
    content = {"sub": "a", "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 60}
    known_to_all = str(issuer.jwk["x"]).ljust(32, "x")
    for token in (
        jwt.encode(content, known_to_all, algorithm="HS256", headers={"kid": issuer.kid}),
        jwt.encode(content, "", algorithm="none", headers={"kid": issuer.kid}),
    ):
        assert "algorithm is not allowed" in refused(folder, token)


def test_signing_keys_can_be_rotated(folder: AccessFolder, tmp_path: Path) -> None:
    """While both keys are in the set, tokens of both are valid; afterwards the old key's tokens are not."""
    import json

    old, new = Issuer("old"), Issuer("new")
    folder.jwt(old)
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [old.jwk, new.jwk]}))
    both = loaded(folder)
    for issuer in (old, new):
        assert both.identify(Presented(issuer.token(), None)).identity.name == "jwt:alice"
    new.write(tmp_path / "jwks.json")
    assert "no key" in refused(folder, old.token())


def test_a_cached_token_expires(folder: AccessFolder) -> None:
    """The token is verified once and cached until its own expiry."""
    issuer = Issuer()
    folder.jwt(issuer, leeway_s=0)
    authenticator = loaded(folder)
    presented = Presented(issuer.token(exp=time.time() + 1.2), None)
    assert authenticator.identify(presented).expires < time.time() + 2
    time.sleep(1.3)
    with pytest.raises(UnauthenticatedError, match="expired"):
        authenticator.identify(presented)
