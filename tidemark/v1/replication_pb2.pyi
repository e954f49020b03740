from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReplicateRequest(_message.Message):
    __slots__ = ("hello", "start", "acknowledged")
    class Hello(_message.Message):
        __slots__ = ("group", "member", "identity", "promised_epoch", "end_offset", "confirm_offset", "segment_size_bytes")
        GROUP_FIELD_NUMBER: _ClassVar[int]
        MEMBER_FIELD_NUMBER: _ClassVar[int]
        IDENTITY_FIELD_NUMBER: _ClassVar[int]
        PROMISED_EPOCH_FIELD_NUMBER: _ClassVar[int]
        END_OFFSET_FIELD_NUMBER: _ClassVar[int]
        CONFIRM_OFFSET_FIELD_NUMBER: _ClassVar[int]
        SEGMENT_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
        group: str
        member: str
        identity: str
        promised_epoch: int
        end_offset: int
        confirm_offset: int
        segment_size_bytes: int
        def __init__(self, group: _Optional[str] = ..., member: _Optional[str] = ..., identity: _Optional[str] = ..., promised_epoch: _Optional[int] = ..., end_offset: _Optional[int] = ..., confirm_offset: _Optional[int] = ..., segment_size_bytes: _Optional[int] = ...) -> None: ...
    class Start(_message.Message):
        __slots__ = ("physical_offset",)
        PHYSICAL_OFFSET_FIELD_NUMBER: _ClassVar[int]
        physical_offset: int
        def __init__(self, physical_offset: _Optional[int] = ...) -> None: ...
    class Acknowledged(_message.Message):
        __slots__ = ("end_offset", "config_number", "free_disk_bytes")
        END_OFFSET_FIELD_NUMBER: _ClassVar[int]
        CONFIG_NUMBER_FIELD_NUMBER: _ClassVar[int]
        FREE_DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
        end_offset: int
        config_number: int
        free_disk_bytes: int
        def __init__(self, end_offset: _Optional[int] = ..., config_number: _Optional[int] = ..., free_disk_bytes: _Optional[int] = ...) -> None: ...
    HELLO_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    hello: ReplicateRequest.Hello
    start: ReplicateRequest.Start
    acknowledged: ReplicateRequest.Acknowledged
    def __init__(self, hello: _Optional[_Union[ReplicateRequest.Hello, _Mapping]] = ..., start: _Optional[_Union[ReplicateRequest.Start, _Mapping]] = ..., acknowledged: _Optional[_Union[ReplicateRequest.Acknowledged, _Mapping]] = ...) -> None: ...

class ReplicateResponse(_message.Message):
    __slots__ = ("welcome", "piece", "config", "take_over", "committed_offset", "end_offset", "needed_offset")
    class Welcome(_message.Message):
        __slots__ = ("group", "epoch", "epoch_numbers", "epoch_starts", "min_offset")
        GROUP_FIELD_NUMBER: _ClassVar[int]
        EPOCH_FIELD_NUMBER: _ClassVar[int]
        EPOCH_NUMBERS_FIELD_NUMBER: _ClassVar[int]
        EPOCH_STARTS_FIELD_NUMBER: _ClassVar[int]
        MIN_OFFSET_FIELD_NUMBER: _ClassVar[int]
        group: str
        epoch: int
        epoch_numbers: _containers.RepeatedScalarFieldContainer[int]
        epoch_starts: _containers.RepeatedScalarFieldContainer[int]
        min_offset: int
        def __init__(self, group: _Optional[str] = ..., epoch: _Optional[int] = ..., epoch_numbers: _Optional[_Iterable[int]] = ..., epoch_starts: _Optional[_Iterable[int]] = ..., min_offset: _Optional[int] = ...) -> None: ...
    class Piece(_message.Message):
        __slots__ = ("physical_offset", "data", "batch_ends", "batch_crcs", "blank_size", "store_timestamp_ms")
        PHYSICAL_OFFSET_FIELD_NUMBER: _ClassVar[int]
        DATA_FIELD_NUMBER: _ClassVar[int]
        BATCH_ENDS_FIELD_NUMBER: _ClassVar[int]
        BATCH_CRCS_FIELD_NUMBER: _ClassVar[int]
        BLANK_SIZE_FIELD_NUMBER: _ClassVar[int]
        STORE_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
        physical_offset: int
        data: bytes
        batch_ends: _containers.RepeatedScalarFieldContainer[int]
        batch_crcs: _containers.RepeatedScalarFieldContainer[int]
        blank_size: int
        store_timestamp_ms: int
        def __init__(self, physical_offset: _Optional[int] = ..., data: _Optional[bytes] = ..., batch_ends: _Optional[_Iterable[int]] = ..., batch_crcs: _Optional[_Iterable[int]] = ..., blank_size: _Optional[int] = ..., store_timestamp_ms: _Optional[int] = ...) -> None: ...
    class Config(_message.Message):
        __slots__ = ("name", "content", "number")
        NAME_FIELD_NUMBER: _ClassVar[int]
        CONTENT_FIELD_NUMBER: _ClassVar[int]
        NUMBER_FIELD_NUMBER: _ClassVar[int]
        name: str
        content: bytes
        number: int
        def __init__(self, name: _Optional[str] = ..., content: _Optional[bytes] = ..., number: _Optional[int] = ...) -> None: ...
    class TakeOver(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    PIECE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    TAKE_OVER_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    NEEDED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    welcome: ReplicateResponse.Welcome
    piece: ReplicateResponse.Piece
    config: ReplicateResponse.Config
    take_over: ReplicateResponse.TakeOver
    committed_offset: int
    end_offset: int
    needed_offset: int
    def __init__(self, welcome: _Optional[_Union[ReplicateResponse.Welcome, _Mapping]] = ..., piece: _Optional[_Union[ReplicateResponse.Piece, _Mapping]] = ..., config: _Optional[_Union[ReplicateResponse.Config, _Mapping]] = ..., take_over: _Optional[_Union[ReplicateResponse.TakeOver, _Mapping]] = ..., committed_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., needed_offset: _Optional[int] = ...) -> None: ...

class DescribeGroupRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeGroupResponse(_message.Message):
    __slots__ = ("role", "store_name", "mode", "member", "identity", "promised_epoch", "group", "epoch", "revision", "min_in_sync", "members", "end_offset", "synced_offset", "committed_offset", "state", "follows_writer", "fault")
    class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ROLE_UNSPECIFIED: _ClassVar[DescribeGroupResponse.Role]
        ROLE_WRITER: _ClassVar[DescribeGroupResponse.Role]
        ROLE_REPLICA: _ClassVar[DescribeGroupResponse.Role]
    ROLE_UNSPECIFIED: DescribeGroupResponse.Role
    ROLE_WRITER: DescribeGroupResponse.Role
    ROLE_REPLICA: DescribeGroupResponse.Role
    class Member(_message.Message):
        __slots__ = ("name", "address", "identity", "in_sync", "eligible", "is_writer", "synced_offset", "lag_seconds", "free_disk_bytes")
        NAME_FIELD_NUMBER: _ClassVar[int]
        ADDRESS_FIELD_NUMBER: _ClassVar[int]
        IDENTITY_FIELD_NUMBER: _ClassVar[int]
        IN_SYNC_FIELD_NUMBER: _ClassVar[int]
        ELIGIBLE_FIELD_NUMBER: _ClassVar[int]
        IS_WRITER_FIELD_NUMBER: _ClassVar[int]
        SYNCED_OFFSET_FIELD_NUMBER: _ClassVar[int]
        LAG_SECONDS_FIELD_NUMBER: _ClassVar[int]
        FREE_DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
        name: str
        address: str
        identity: str
        in_sync: bool
        eligible: bool
        is_writer: bool
        synced_offset: int
        lag_seconds: float
        free_disk_bytes: int
        def __init__(self, name: _Optional[str] = ..., address: _Optional[str] = ..., identity: _Optional[str] = ..., in_sync: bool = ..., eligible: bool = ..., is_writer: bool = ..., synced_offset: _Optional[int] = ..., lag_seconds: _Optional[float] = ..., free_disk_bytes: _Optional[int] = ...) -> None: ...
    ROLE_FIELD_NUMBER: _ClassVar[int]
    STORE_NAME_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    PROMISED_EPOCH_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    MIN_IN_SYNC_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SYNCED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    FOLLOWS_WRITER_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    role: DescribeGroupResponse.Role
    store_name: str
    mode: str
    member: str
    identity: str
    promised_epoch: int
    group: str
    epoch: int
    revision: int
    min_in_sync: int
    members: _containers.RepeatedCompositeFieldContainer[DescribeGroupResponse.Member]
    end_offset: int
    synced_offset: int
    committed_offset: int
    state: bytes
    follows_writer: bool
    fault: str
    def __init__(self, role: _Optional[_Union[DescribeGroupResponse.Role, str]] = ..., store_name: _Optional[str] = ..., mode: _Optional[str] = ..., member: _Optional[str] = ..., identity: _Optional[str] = ..., promised_epoch: _Optional[int] = ..., group: _Optional[str] = ..., epoch: _Optional[int] = ..., revision: _Optional[int] = ..., min_in_sync: _Optional[int] = ..., members: _Optional[_Iterable[_Union[DescribeGroupResponse.Member, _Mapping]]] = ..., end_offset: _Optional[int] = ..., synced_offset: _Optional[int] = ..., committed_offset: _Optional[int] = ..., state: _Optional[bytes] = ..., follows_writer: bool = ..., fault: _Optional[str] = ...) -> None: ...

class PromoteRequest(_message.Message):
    __slots__ = ("stopped_writer", "unclean")
    STOPPED_WRITER_FIELD_NUMBER: _ClassVar[int]
    UNCLEAN_FIELD_NUMBER: _ClassVar[int]
    stopped_writer: str
    unclean: bool
    def __init__(self, stopped_writer: _Optional[str] = ..., unclean: bool = ...) -> None: ...

class PromoteResponse(_message.Message):
    __slots__ = ("epoch",)
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    def __init__(self, epoch: _Optional[int] = ...) -> None: ...

class HandOverRequest(_message.Message):
    __slots__ = ("member",)
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    member: str
    def __init__(self, member: _Optional[str] = ...) -> None: ...

class HandOverResponse(_message.Message):
    __slots__ = ("epoch",)
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    def __init__(self, epoch: _Optional[int] = ...) -> None: ...

class ChecksumLogRequest(_message.Message):
    __slots__ = ("begin_offset", "end_offset", "step_bytes")
    BEGIN_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    STEP_BYTES_FIELD_NUMBER: _ClassVar[int]
    begin_offset: int
    end_offset: int
    step_bytes: int
    def __init__(self, begin_offset: _Optional[int] = ..., end_offset: _Optional[int] = ..., step_bytes: _Optional[int] = ...) -> None: ...

class ChecksumLogResponse(_message.Message):
    __slots__ = ("crcs",)
    CRCS_FIELD_NUMBER: _ClassVar[int]
    crcs: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, crcs: _Optional[_Iterable[int]] = ...) -> None: ...

class FetchLogRequest(_message.Message):
    __slots__ = ("begin_offset", "end_offset")
    BEGIN_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    begin_offset: int
    end_offset: int
    def __init__(self, begin_offset: _Optional[int] = ..., end_offset: _Optional[int] = ...) -> None: ...

class FetchLogResponse(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...
