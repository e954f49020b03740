"""Messages of replication ⇄ protobuf."""

from __future__ import annotations

from tidemark.errors import ArgumentIllegalError
from tidemark.replication.epochs import Epoch
from tidemark.store.batch_journal import BatchRange
from tidemark.v1 import replication_pb2 as pb

from ..replication.messages import Acknowledged, Config, Hello, TakeOver, Told, Welcome
from ..replication.piece import Piece


def encode_request(message: Hello | int | Acknowledged) -> pb.ReplicateRequest:
    """Return a replica's message; a number is the physical offset to start from."""
    if isinstance(message, Hello):
        hello = pb.ReplicateRequest.Hello(
            group=message.group,
            member=message.member,
            identity=message.identity,
            promised_epoch=message.promised_epoch,
            end_offset=message.end,
            confirm_offset=message.confirm,
            segment_size_bytes=message.segment_size,
        )
        return pb.ReplicateRequest(hello=hello)
    if isinstance(message, Acknowledged):
        acknowledged = pb.ReplicateRequest.Acknowledged(
            end_offset=message.end,
            config_number=message.config_number,
            free_disk_bytes=message.free_disk_bytes,
        )
        return pb.ReplicateRequest(acknowledged=acknowledged)
    return pb.ReplicateRequest(start=pb.ReplicateRequest.Start(physical_offset=message))


def decode_request(request: pb.ReplicateRequest) -> Hello | int | Acknowledged:
    """Return the message in *request*. Raises ArgumentIllegalError if there is none."""
    kind = request.WhichOneof("kind")
    if kind == "acknowledged":
        told = request.acknowledged
        return Acknowledged(told.end_offset, told.config_number, told.free_disk_bytes)
    if kind == "start":
        return request.start.physical_offset
    if kind == "hello":
        hello = request.hello
        return Hello(
            hello.group,
            hello.member,
            hello.identity,
            hello.promised_epoch,
            hello.end_offset,
            hello.confirm_offset,
            hello.segment_size_bytes,
        )
    raise ArgumentIllegalError("the message of the replica is empty or of an unknown kind", argument="kind")


def encode_response(told: Told) -> pb.ReplicateResponse:
    """Return a writer's message."""
    response = pb.ReplicateResponse(committed_offset=told.committed, end_offset=told.end, needed_offset=told.needed)
    message = told.message
    if isinstance(message, Piece):
        _encode_piece(message, response.piece)
    elif isinstance(message, Config):
        response.config.CopyFrom(
            pb.ReplicateResponse.Config(name=message.name, content=message.content, number=message.number)
        )
    elif isinstance(message, Welcome):
        response.welcome.CopyFrom(
            pb.ReplicateResponse.Welcome(
                group=message.group,
                epoch=message.epoch,
                epoch_numbers=[epoch.number for epoch in message.epochs],
                epoch_starts=[epoch.start for epoch in message.epochs],
                min_offset=message.min_offset,
            )
        )
    elif isinstance(message, TakeOver):
        response.take_over.SetInParent()
    return response


def _encode_piece(piece: Piece, encoded: pb.ReplicateResponse.Piece) -> None:
    """Fill *encoded* in its place: a message that is copied into another one copies the data twice more."""
    encoded.physical_offset = piece.start
    encoded.data = bytes(piece.data)
    encoded.batch_ends.extend(batch.end for batch in piece.batches)
    encoded.batch_crcs.extend(batch.crc for batch in piece.batches)
    encoded.blank_size = piece.blank
    encoded.store_timestamp_ms = piece.store_timestamp


def decode_response(response: pb.ReplicateResponse) -> Told:
    """Return a writer's message. Raises ArgumentIllegalError for a piece whose lists differ in length."""
    message: Welcome | Piece | Config | TakeOver | None = None
    kind = response.WhichOneof("kind")
    if kind == "piece":
        message = _decode_piece(response.piece)
    elif kind == "config":
        message = Config(response.config.name, response.config.content, response.config.number)
    elif kind == "welcome":
        welcome = response.welcome
        epochs = zip(welcome.epoch_numbers, welcome.epoch_starts, strict=False)
        numbered = tuple(Epoch(number, start) for number, start in epochs)
        message = Welcome(welcome.group, welcome.epoch, numbered, welcome.min_offset)
    elif kind == "take_over":
        message = TakeOver()
    return Told(message, response.committed_offset, response.end_offset, response.needed_offset)


def _decode_piece(piece: pb.ReplicateResponse.Piece) -> Piece:
    ends, crcs = list(piece.batch_ends), list(piece.batch_crcs)
    if len(ends) != len(crcs):
        raise ArgumentIllegalError(
            f"the piece at {piece.physical_offset} has {len(ends)} batches and {len(crcs)} checksums", argument="piece"
        )
    starts = [piece.physical_offset, *ends[:-1]]
    batches = tuple(BatchRange(*batch) for batch in zip(starts, ends, crcs, strict=bool(ends)))
    return Piece(piece.physical_offset, piece.data, batches, piece.blank_size, piece.store_timestamp_ms)
