"""Parsing of access files, and the refusal of invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.access_files import AccessFolder, Issuer
from tidemark.access.access_file import AccessFile
from tidemark.access.identity import Identity, Presented
from tidemark.access.right import Action, on_group, on_topic
from tidemark.errors import AccessFileError

HASH = "0" * 64
PRINCIPAL = f'[[principal]]\nname = "a"\ntoken_sha256 = ["{HASH}"]\n'
RULE = '[[rule]]\nprincipals = ["a"]\nresources = ["Topic:t"]\nactions = ["Pub"]\n'


def refusal(path: Path, text: str) -> str:
    """Return the message that refuses a file with this text."""
    path.write_text(text)
    with pytest.raises(AccessFileError) as told:
        AccessFile(path).load()
    return told.value.message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "version: Field required"),
        ("version = 2\n", "version: Input should be 1"),
        ("version = 1\n[[rules]]\n", "rules: Extra inputs are not permitted"),
        ("version = 1\n[[principal]\n", "is not valid TOML"),
        (f'version = 1\n[[principal]]\nname = "a b"\ntoken_sha256 = ["{HASH}"]\n', "principal.0.name"),
        ('version = 1\n[[principal]]\nname = "a"\ntoken_sha256 = ["secret"]\n', "64 lower-case hexadecimal digits"),
        (f"version = 1\n{PRINCIPAL}{PRINCIPAL}", "principal a occurs more than once"),
        (f"version = 1\n{PRINCIPAL}" + RULE.replace('"a"', '"b"'), "rule.0: principal b is not defined"),
        (
            f"version = 1\n{PRINCIPAL}" + RULE.replace('principals = ["a"]', 'roles = ["r"]'),
            "no principal has the role r",
        ),
        (f"version = 1\n{PRINCIPAL}" + RULE.replace('principals = ["a"]\n', ""), "at least one principal or role"),
        (f"version = 1\n{PRINCIPAL}" + RULE.replace("Topic:t", "topic:t"), "is not a pattern"),
        (f"version = 1\n{PRINCIPAL}" + RULE.replace("Topic:t", "Topic:*t"), "is not a pattern"),
        (f"version = 1\n{PRINCIPAL}" + RULE.replace("Pub", "pub"), "rule.0.actions.0: the actions are Pub, Sub, "),
        (f"version = 1\n{PRINCIPAL}" + RULE.replace('["Pub"]', "[]"), "rule.0.actions: Tuple should have at least 1"),
        (f"version = 1\n{PRINCIPAL}{RULE}" + 'decision = "deny"\n', "rule.0.decision"),
        (f"version = 1\n{PRINCIPAL}{RULE}" + 'sources = ["10.0.0.1/8"]\n', "has host bits set"),
        (f'version = 1\n{PRINCIPAL}jwt_subjects = ["x"]\n', "requires a section [jwt]"),
    ],
)
def test_an_access_file_with_a_spelling_error_is_refused(tmp_path: Path, text: str, told: str) -> None:
    """Nothing of the file takes effect, so that a denying rule with a spelling error is not silently ignored."""
    assert told in refusal(tmp_path / "access.toml", text)


def test_an_unknown_action_is_reported_once(tmp_path: Path) -> None:
    """The list of actions is not reported as empty, too."""
    refused = refusal(tmp_path / "access.toml", f"version = 1\n{PRINCIPAL}" + RULE.replace("Pub", "Publish"))
    assert refused.endswith("rule.0.actions.0: the actions are Pub, Sub, Create, Update, Delete, Get, List and All")


def test_an_access_file_error_does_not_contain_the_value(tmp_path: Path) -> None:
    """An operator may write the token in place of its hash."""
    text = 'version = 1\n[[principal]]\nname = "a"\ntoken_sha256 = ["tidemark_very-secret"]\n'
    assert "very-secret" not in refusal(tmp_path / "access.toml", text)


def test_an_access_file_writable_by_others_is_refused(tmp_path: Path) -> None:
    """A user who can write the file could grant every right."""
    path = tmp_path / "access.toml"
    path.write_text("version = 1\n")
    path.chmod(0o664)
    with pytest.raises(AccessFileError, match="is writable by others"):
        AccessFile(path).load()


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AccessFileError, match=r"absent\.toml: No such file"):
        AccessFile(tmp_path / "absent.toml").load()


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("{}", "not a JSON Web Key Set"),
        ("[]", "not a JSON Web Key Set"),
        ('{"keys": []}', "not a JSON Web Key Set"),
        ('{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "x"}]}', "only public keys"),
        ("\x00", "not a JSON Web Key Set"),
    ],
)
def test_an_unusable_key_set_is_refused(tmp_path: Path, keys: str, told: str) -> None:
    """A shared secret would let other readers of the issuer's tokens sign them."""
    folder = AccessFolder(tmp_path)
    folder.jwt(Issuer())
    (tmp_path / "jwks.json").write_text(keys)
    with pytest.raises(AccessFileError, match=told):
        AccessFile(folder.path).load()


def test_the_stamps_change_with_the_key_set(tmp_path: Path) -> None:
    """Keys are rotated in a separate file."""
    folder = AccessFolder(tmp_path)
    folder.jwt(Issuer())
    before = AccessFile(folder.path).stamps()
    Issuer("two").write(tmp_path / "jwks.json")
    (tmp_path / "jwks.json").touch()
    assert AccessFile(folder.path).stamps() != before


def test_a_valid_access_file_grants_its_rights(tmp_path: Path) -> None:
    """A token finds its principal, and the principal its rights."""
    folder = AccessFolder(tmp_path)
    token = folder.principal("orders", roles=["eu"])
    folder.rule("orders", ["Pub"], "Topic:orders*")
    loaded = AccessFile(folder.path).load()
    known = loaded.authenticator.identify(Presented(token, None))
    assert known.identity == Identity("orders", frozenset({"eu"}))
    may = [
        loaded.policy.allows(known.identity, right, "127.0.0.1")
        for right in (on_topic("orders-1", Action.PUB), on_topic("orders-1", Action.SUB), on_group("g", Action.SUB))
    ]
    assert may == [True, False, False]
