"""The ACL 1.0 signature."""

from __future__ import annotations

import base64
import hashlib

import pytest

from tidemark.remoting.signature import is_signed, sign, signed_text

SECRET = "secretKey"
FIELDS = {"b": "T", "a": "g", "SecurityToken": "token", "AccessKey": "ak"}  # in another order than when signed
BODY = b"body"


def hmac_sha1(key: bytes, content: bytes) -> str:
    """Return HMAC-SHA-1 by RFC 2104, in Base64."""
    block = key.ljust(64, b"\0")
    inner = hashlib.sha1(bytes(byte ^ 0x36 for byte in block) + content).digest()
    outer = hashlib.sha1(bytes(byte ^ 0x5C for byte in block) + inner).digest()
    return base64.b64encode(outer).decode()


def test_hmac_of_this_test_is_the_one_of_rfc_2202() -> None:
    """It is the first vector of the RFC."""
    given = base64.b64decode(hmac_sha1(b"\x0b" * 20, b"Hi There"))
    assert given.hex() == "b617318655057264e28bc0b6fb378c8ef146be00"


def test_signed_values_are_in_the_byte_order_of_their_names() -> None:
    assert signed_text({**FIELDS, "Signature": "s"}) == b"aktokengT"
    assert signed_text(FIELDS, with_token=False) == b"akgT"
    assert signed_text({"\U00010000": "2", "\uffff": "1"}) == b"12"


def test_signature_covers_fields_and_body() -> None:
    assert sign(SECRET, FIELDS, BODY) == hmac_sha1(b"secretKey", b"aktokengTbody")
    assert sign(SECRET, FIELDS, memoryview(BODY), with_token=False) == hmac_sha1(b"secretKey", b"akgTbody")


@pytest.mark.parametrize("content", [b"aktokengTbody", b"akgTbody"])
def test_signature_with_and_without_the_token_is_accepted(content: bytes) -> None:
    signed = {**FIELDS, "Signature": hmac_sha1(b"secretKey", content)}
    assert is_signed(SECRET, signed, BODY)
    assert not is_signed(SECRET, signed, b"bodies")
    assert not is_signed("other", signed, BODY)
    assert not is_signed(SECRET, {**signed, "b": "T2"}, BODY)


@pytest.mark.parametrize("signature", ["", "x", "é", "=" * 100])
def test_another_signature_is_refused(signature: str) -> None:
    assert not is_signed(SECRET, {**FIELDS, "Signature": signature}, BODY)
    assert not is_signed(SECRET, FIELDS, BODY)
