"""Access files, headers and tokens of any form are accepted, or refused by name.

No token without its issuer's signature gives access.
"""

from __future__ import annotations

import base64
import contextlib
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import strategies as st

from tests.access_files import AUDIENCE, ISSUER, AccessFolder, Issuer
from tests.fuzz.mutation import mutated
from tests.fuzz.target import fuzz
from tidemark.access.access_file import AccessFile
from tidemark.access.authenticator import Authenticator
from tidemark.access.identity import Identity, Presented
from tidemark.access.right import Action, ResourceKind, Right
from tidemark.errors import AccessFileError, UnauthenticatedError

ISSUED = Issuer()
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["sub", "exp", "aud", "kid", "x"]), inner, max_size=3),
    ),
    max_leaves=8,
)
CLAIMS = st.dictionaries(
    st.sampled_from(["sub", "iss", "aud", "exp", "nbf", "iat", "jti", "roles", "crit"]), JSON, max_size=5
)
HEADERS = st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jku", "jwk", "x5u"]), JSON, max_size=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder whose files are overwritten."""
    return tmp_path_factory.mktemp("access")


@pytest.fixture(scope="module")
def authenticator(folder: Path) -> Authenticator:
    """Return an authenticator of an issuer, and a principal with a static token."""
    files = AccessFolder(folder)
    files.jwt(ISSUED)
    files.principal("orders")
    return AccessFile(files.path).load().authenticator


def good_file() -> bytes:
    """Return a file with every kind of entry."""
    return b"""version = 1
[jwt]
jwks_file = "jwks.json"
issuer = "i"
audience = "a"
[[principal]]
name = "a"
token_sha256 = ["%s"]
certificates = ["CN=a"]
roles = ["r"]
max_requests_per_s = 1
[[rule]]
principals = ["a", "jwt:x"]
roles = ["r"]
resources = ["Topic:t*", "*", "Group:g"]
actions = ["Pub", "All"]
decision = "Deny"
sources = ["10.0.0.0/8", "::1/128"]
""" % (b"0" * 64)


@fuzz(few=100, at_once=500, content=st.one_of(mutated(st.just(good_file())), st.binary(max_size=200)))
def test_a_fuzzed_access_file_is_loaded_or_refused(folder: Path, content: bytes) -> None:
    """An accepted file can decide every request."""
    path = folder / "fuzzed.toml"
    path.write_bytes(content)
    ISSUED.write(folder / "jwks.json")
    loaded = None
    with contextlib.suppress(AccessFileError):
        loaded = AccessFile(path).load()
    if loaded is not None:
        known = Identity("a", loaded.authenticator.roles_of("a"))
        for kind in ResourceKind:
            loaded.policy.allows(known, Right(kind, "t", tuple(Action)), "10.0.0.1")


@fuzz(few=60, at_once=500, keys=st.one_of(JSON.map(json.dumps), st.text(max_size=50), st.just('{"keys": [{}]}')))
def test_a_fuzzed_key_set_is_loaded_or_refused(folder: Path, keys: str) -> None:
    """The provider may write anything."""
    path = folder / "with-keys.toml"
    path.write_bytes(good_file())
    (folder / "jwks.json").write_text(keys, "utf-8", errors="replace")
    with pytest.raises(AccessFileError):
        AccessFile(path).load()


@fuzz(
    few=100,
    at_once=1_000,
    header=st.one_of(st.text(max_size=60), st.binary(max_size=60).map(lambda raw: raw.decode("latin-1"))),
)
def test_a_random_authorization_header_is_refused(authenticator: Authenticator, header: str) -> None:
    """It raises no other error either."""
    for text in (header, f"Bearer {header}", f"bearer {header}.{header}.{header}"):
        with pytest.raises(UnauthenticatedError):
            authenticator.identify(Presented.of(text, None))


def encoded(content: Any) -> str:
    """Encode a part of a token."""
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


@fuzz(few=100, at_once=500, header=HEADERS, claims=CLAIMS, signature=st.binary(max_size=80))
def test_a_token_with_a_random_signature_is_refused(
    authenticator: Authenticator, header: dict[str, Any], claims: dict[str, Any], signature: bytes
) -> None:
    """The algorithm in its header does not matter."""
    content = {"sub": "a", "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 60, **claims}
    signed = base64.urlsafe_b64encode(signature).rstrip(b"=").decode()
    token = ".".join([encoded({"alg": "ES256", "kid": ISSUED.kid, **header}), encoded(content), signed])
    with pytest.raises(UnauthenticatedError):
        authenticator.identify(Presented(token, None))


@fuzz(few=60, at_once=300, claims=CLAIMS)
def test_a_signed_token_with_random_claims_is_accepted_only_if_valid(
    authenticator: Authenticator, claims: dict[str, Any]
) -> None:
    """An accepted token has a subject, and is valid until its expiry."""
    content = {"sub": "a", "iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 60, **claims}
    token = jwt.api_jws.encode(json.dumps(content).encode(), ISSUED.key, algorithm="ES256", headers={"kid": ISSUED.kid})
    try:
        known = authenticator.identify(Presented(token, None))
    except UnauthenticatedError:
        return
    assert known.identity.name == f"jwt:{content['sub']}"
    assert content["iss"] == ISSUER
    assert known.expires > time.time()
    assert all(isinstance(role, str) for role in known.identity.roles)


@fuzz(few=60, at_once=500, token=mutated(st.just(ISSUED.token(exp=time.time() + 1e6).encode())))
def test_a_changed_token_is_refused(authenticator: Authenticator, token: bytes) -> None:
    """A byte is added, removed or changed."""
    try:
        known = authenticator.identify(Presented.of(b"Bearer " + token, None))
    except UnauthenticatedError:
        return
    assert known.identity.name == "jwt:alice"  # base64 has unused bits
    header, payload, _ = token.decode("latin-1").strip().split(".")  # surrounding whitespace is not part of a token
    good = ISSUED.token(exp=0).split(".")[0]
    assert header == good
    assert json.loads(base64.urlsafe_b64decode(payload + "=="))["sub"] == "alice"
