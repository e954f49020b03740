"""LoneSendStream: a short path for a batch that is alone on the connection, as in a loop of `Producer.send`.

It applies if the caller waits for the answer, nothing is in flight, and the connection is open. Then one thread sends
the frame, waits, and returns the result: no future is completed, no other thread takes part. The batch is registered
like any other, so that `flush`, `close` and sends of other threads see it. Whatever differs from one plain
acknowledgement is left to `RemotingStream`: refusals, other answers, the end of the connection, the deadline.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tidemark.client.send_result import SendResult
from tidemark.client.wire.append_frame import encode_entry
from tidemark.client.wire.driven_future import Callback, DrivenFuture
from tidemark.client.wire.frame_socket import FrameSocket
from tidemark.client.wire.pending_batches import Pending
from tidemark.client.wire.remoting_stream import CONNECTION_FAULTS, LONGEST_WAIT_S, MAX_OPAQUE, RemotingStream
from tidemark.errors import StoreError
from tidemark.remoting.prepared_head import success_body
from tidemark.v1.commit_log_pb2 import AppendStreamResponse


class LoneSendStream(RemotingStream):
    """A RemotingStream with `send_alone`."""

    def driven_future(self, on_failure: Sequence[Callback]) -> DrivenFuture:
        """Return a future as `future(AnswerReader.CALLER)` does."""
        return DrivenFuture(self._drive, on_failure)

    def send_alone(self, pending: Pending) -> SendResult:
        """Send *pending*, and return its result. Raises as `submit`, or the error of its future.

        pending  its future is a `driven_future`, which a plain acknowledgement does not complete
        """
        result = None
        if not self._pending.unanswered and self._reading.acquire(blocking=False):
            try:
                result = self._exchange(pending)
            except BaseException:  # KeyboardInterrupt: perhaps a part of the frame was sent, or received bytes are lost
                if self._socket is not None:
                    self._socket.end()
                raise
            finally:
                self._reading.release()
                if self._pending.unanswered:
                    self._leave()
        if result is not None:
            return result
        if not pending.correlation_id:  # it is not registered
            self.submit(pending)
        return pending.future.result()

    def _exchange(self, pending: Pending) -> SendResult | None:
        """Send *pending* and read its answer. None: it is not registered, or its future is done."""
        connection = self._socket
        if connection is None or connection.has_input():  # perhaps its end
            return None
        opaque = self._send_lone(connection, pending)
        if opaque is None:
            return None
        try:
            data = connection.receive_bytes(min(LONGEST_WAIT_S, pending.deadline - pending.given))
            if data:
                result = self._acknowledged(connection, data, pending, opaque)
                if result is not None:
                    return result
                self._arrived(connection, data)
        except CONNECTION_FAULTS as error:
            self._lost(connection, error)
        self._read_until(pending.future.done)
        return None

    def _send_lone(self, connection: FrameSocket, pending: Pending) -> int | None:
        """Send *pending*, and return its frame's opaque number; None, without a change, if it is not alone."""
        try:
            head = self._request_head()
        except StoreError:  # the token cannot be read, which `submit` reports
            return None
        if not self._sending.acquire(blocking=False):
            return None
        try:
            opaque = next(self._opaque) & MAX_OPAQUE
            with self._lock:
                if self._closing or self._pending.unanswered or self._socket is not connection:
                    return None
                number = self._pending.add_sent(pending)
                self._frames[opaque] = [number]
            before, packed = encode_entry(number, pending.request, pending.packed)
            data = b"".join((head.encode(opaque, len(before) + len(packed)), before, packed))
            if rest := connection.send_now(data):
                connection.send(rest, self._patience_s())
        except OSError:
            connection.end()  # `receive_bytes` raises
        finally:
            self._sending.release()
        if self._pending.is_ready:  # another thread's batch, which could not be sent meanwhile
            self._send_ready()
        return opaque

    def _acknowledged(self, connection: FrameSocket, data: bytes, pending: Pending, opaque: int) -> SendResult | None:
        """Remove *pending* and return its result if *data* is its acknowledgement; None, without a change, otherwise.

        Raises DecodeError for a body that is no message.
        """
        body = success_body(data, opaque) if connection.is_between_frames else None
        if body is None:
            return None
        results = AppendStreamResponse.FromString(body).results
        if len(results) != 1:
            return None
        number, answer = pending.correlation_id, results[0]
        if answer.correlation_id != number or not answer.HasField("appended") or self._is_open(answer.appended):
            return None
        try:
            result = SendResult.of(
                pending.request, answer.appended, writer=self._address, message_ids=pending.message_ids
            )
        except ValueError:  # an answer that this client does not know
            return None
        with self._lock:
            self._frames.pop(opaque, None)
            is_given_up = self._pending.settle(number) is None
            if self._waiting_for_room:
                self._notify_room()
        self._heard_at = time.monotonic()
        return None if is_given_up else result
