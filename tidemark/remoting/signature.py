"""The signature of ACL 1.0: HmacSHA1 over fields and body, with a secret that client and server share.

Nothing in it is bound to a time or a connection, so it can be replayed: it needs TLS. Java signs the value of
`SecurityToken` too, Go does not; `is_signed` accepts either.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping

from tidemark.remoting.frame import Buffer

ACCESS_KEY = "AccessKey"
SIGNATURE = "Signature"
SECURITY_TOKEN = "SecurityToken"  # noqa: S105 - the field's name


def signed_text(fields: Mapping[str, str], *, with_token: bool = True) -> bytes:
    """Return the signed content before the body: the values of all fields but `Signature`, in the order of the names.

    Args:
        with_token: whether the value of `SecurityToken` is part of it.
    """
    left_out = (SIGNATURE,) if with_token else (SIGNATURE, SECURITY_TOKEN)
    named = sorted((name.encode(), value) for name, value in fields.items() if name not in left_out)
    return "".join(value for _, value in named).encode()


def sign(secret: str, fields: Mapping[str, str], body: Buffer = b"", *, with_token: bool = True) -> str:
    """Return the value of `Signature`."""
    content = hmac.new(secret.encode(), signed_text(fields, with_token=with_token), "sha1")
    content.update(body)
    return base64.b64encode(content.digest()).decode()


def is_signed(secret: str, fields: Mapping[str, str], body: Buffer = b"") -> bool:
    """Return True if *fields* carry a signature by *secret*. The comparison takes the same time for any signature."""
    given = fields.get(SIGNATURE, "").encode()
    by_java = hmac.compare_digest(sign(secret, fields, body).encode(), given)
    by_go = hmac.compare_digest(sign(secret, fields, body, with_token=False).encode(), given)
    return by_java or by_go
