"""BrokerCalls: requests to name servers and brokers, each on its own connection, because they are rare."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

from tidemark.errors import BrokerUnreachableError, FrameIllegalError
from tidemark.remoting import decode, encode
from tidemark.remoting.codes import ResponseCode
from tidemark.remoting.frame import Frame, request
from tidemark.remoting.signature import ACCESS_KEY, SIGNATURE, sign

_TIMEOUT_S = 5.0
_LENGTH = struct.Struct(">i")
_MOST_BYTES = 256 << 20  # of an answer: a table of topics has about 300 bytes for each


class BrokerCalls:
    """Calls that are signed with an access key, unless that is empty. secret_file: its first line is the secret."""

    def __init__(self, access_key: str = "", secret_file: Path | None = None) -> None:
        self._access_key = access_key
        self._secret_file = secret_file

    async def ask(self, address: str, code: int) -> Frame:
        """Return the answer of the server at host:port. Raises BrokerUnreachableError, also if it refuses."""
        asked = request(code, self._shown(), opaque=1)
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                answer = decode(await _exchange(address, encode(asked)))
        except (OSError, EOFError, FrameIllegalError) as error:  # TimeoutError is an OSError
            text = str(error) or f"no answer within {_TIMEOUT_S:g} s"
            raise BrokerUnreachableError(f"{address} does not answer: {text}", address=address) from error
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerUnreachableError(
                f"{address} refuses request {int(code)} with code {answer.code}: {answer.remark}", address=address
            )
        return answer

    def _shown(self) -> dict[str, str]:
        if self._secret_file is None:
            return {}
        fields = {ACCESS_KEY: self._access_key}
        try:
            secret = self._secret_file.read_text().partition("\n")[0].strip()
        except OSError as error:
            raise BrokerUnreachableError(f"the secret key cannot be read: {error}") from error
        return {**fields, SIGNATURE: sign(secret, fields)}


async def _exchange(address: str, data: bytes) -> bytes:
    """Send *data* and return one frame. Raises OSError, EOFError or FrameIllegalError."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(data)
        await writer.drain()
        head = await reader.readexactly(_LENGTH.size)
        (size,) = _LENGTH.unpack(head)
        if not 0 < size <= _MOST_BYTES:
            raise FrameIllegalError(f"an answer has {size} bytes; at most {_MOST_BYTES} are read")
        return head + await reader.readexactly(size)
    finally:
        writer.close()
