from google.rpc import status_pb2 as _status_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FlushMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FLUSH_MODE_UNSPECIFIED: _ClassVar[FlushMode]
    FLUSH_MODE_SYNC: _ClassVar[FlushMode]
    FLUSH_MODE_ASYNC: _ClassVar[FlushMode]

class PutStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PUT_STATUS_UNSPECIFIED: _ClassVar[PutStatus]
    PUT_STATUS_PUT_OK: _ClassVar[PutStatus]
    PUT_STATUS_FLUSH_DISK_TIMEOUT: _ClassVar[PutStatus]
    PUT_STATUS_FLUSH_SLAVE_TIMEOUT: _ClassVar[PutStatus]
    PUT_STATUS_SLAVE_NOT_AVAILABLE: _ClassVar[PutStatus]
FLUSH_MODE_UNSPECIFIED: FlushMode
FLUSH_MODE_SYNC: FlushMode
FLUSH_MODE_ASYNC: FlushMode
PUT_STATUS_UNSPECIFIED: PutStatus
PUT_STATUS_PUT_OK: PutStatus
PUT_STATUS_FLUSH_DISK_TIMEOUT: PutStatus
PUT_STATUS_FLUSH_SLAVE_TIMEOUT: PutStatus
PUT_STATUS_SLAVE_NOT_AVAILABLE: PutStatus

class Message(_message.Message):
    __slots__ = ("body", "tag", "keys", "properties", "flag")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    BODY_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    FLAG_FIELD_NUMBER: _ClassVar[int]
    body: bytes
    tag: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    properties: _containers.ScalarMap[str, str]
    flag: int
    def __init__(self, body: _Optional[bytes] = ..., tag: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ..., properties: _Optional[_Mapping[str, str]] = ..., flag: _Optional[int] = ...) -> None: ...

class MessageList(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    def __init__(self, messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ...) -> None: ...

class AppendBatchRequest(_message.Message):
    __slots__ = ("topic", "queue_id", "routing_key", "request_id", "expected_next_offset", "packed", "messages", "properties", "born_timestamp_ms", "sys_flag", "flag", "reconsume_times", "traceparent", "tracestate")
    class PropertiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    QUEUE_ID_FIELD_NUMBER: _ClassVar[int]
    ROUTING_KEY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    PACKED_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    BORN_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    SYS_FLAG_FIELD_NUMBER: _ClassVar[int]
    FLAG_FIELD_NUMBER: _ClassVar[int]
    RECONSUME_TIMES_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    TRACESTATE_FIELD_NUMBER: _ClassVar[int]
    topic: str
    queue_id: int
    routing_key: str
    request_id: str
    expected_next_offset: int
    packed: bytes
    messages: MessageList
    properties: _containers.ScalarMap[str, str]
    born_timestamp_ms: int
    sys_flag: int
    flag: int
    reconsume_times: int
    traceparent: str
    tracestate: str
    def __init__(self, topic: _Optional[str] = ..., queue_id: _Optional[int] = ..., routing_key: _Optional[str] = ..., request_id: _Optional[str] = ..., expected_next_offset: _Optional[int] = ..., packed: _Optional[bytes] = ..., messages: _Optional[_Union[MessageList, _Mapping]] = ..., properties: _Optional[_Mapping[str, str]] = ..., born_timestamp_ms: _Optional[int] = ..., sys_flag: _Optional[int] = ..., flag: _Optional[int] = ..., reconsume_times: _Optional[int] = ..., traceparent: _Optional[str] = ..., tracestate: _Optional[str] = ...) -> None: ...

class AppendBatchResponse(_message.Message):
    __slots__ = ("status", "queue_id", "queue_offset", "message_count", "physical_offset", "end_physical_offset", "store_timestamp_ms", "store_host", "physical_offsets", "duplicate", "term", "deliver_timestamp_ms", "stored_topic")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    PHYSICAL_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_PHYSICAL_OFFSET_FIELD_NUMBER: _ClassVar[int]
    STORE_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    STORE_HOST_FIELD_NUMBER: _ClassVar[int]
    PHYSICAL_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    DELIVER_TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    STORED_TOPIC_FIELD_NUMBER: _ClassVar[int]
    status: PutStatus
    queue_id: int
    queue_offset: int
    message_count: int
    physical_offset: int
    end_physical_offset: int
    store_timestamp_ms: int
    store_host: bytes
    physical_offsets: bytes
    duplicate: bool
    term: int
    deliver_timestamp_ms: int
    stored_topic: str
    def __init__(self, status: _Optional[_Union[PutStatus, str]] = ..., queue_id: _Optional[int] = ..., queue_offset: _Optional[int] = ..., message_count: _Optional[int] = ..., physical_offset: _Optional[int] = ..., end_physical_offset: _Optional[int] = ..., store_timestamp_ms: _Optional[int] = ..., store_host: _Optional[bytes] = ..., physical_offsets: _Optional[bytes] = ..., duplicate: bool = ..., term: _Optional[int] = ..., deliver_timestamp_ms: _Optional[int] = ..., stored_topic: _Optional[str] = ...) -> None: ...

class AppendStreamRequest(_message.Message):
    __slots__ = ("batches",)
    class Entry(_message.Message):
        __slots__ = ("correlation_id", "batch")
        CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
        BATCH_FIELD_NUMBER: _ClassVar[int]
        correlation_id: int
        batch: AppendBatchRequest
        def __init__(self, correlation_id: _Optional[int] = ..., batch: _Optional[_Union[AppendBatchRequest, _Mapping]] = ...) -> None: ...
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    batches: _containers.RepeatedCompositeFieldContainer[AppendStreamRequest.Entry]
    def __init__(self, batches: _Optional[_Iterable[_Union[AppendStreamRequest.Entry, _Mapping]]] = ...) -> None: ...

class AppendStreamResponse(_message.Message):
    __slots__ = ("results",)
    class Result(_message.Message):
        __slots__ = ("correlation_id", "appended", "error")
        CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
        APPENDED_FIELD_NUMBER: _ClassVar[int]
        ERROR_FIELD_NUMBER: _ClassVar[int]
        correlation_id: int
        appended: AppendBatchResponse
        error: _status_pb2.Status
        def __init__(self, correlation_id: _Optional[int] = ..., appended: _Optional[_Union[AppendBatchResponse, _Mapping]] = ..., error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ...) -> None: ...
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[AppendStreamResponse.Result]
    def __init__(self, results: _Optional[_Iterable[_Union[AppendStreamResponse.Result, _Mapping]]] = ...) -> None: ...

class SendBackRequest(_message.Message):
    __slots__ = ("group", "topic", "physical_offset", "inner_index", "delay_level", "max_reconsume_times", "origin_message_id", "keep_unique_key")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PHYSICAL_OFFSET_FIELD_NUMBER: _ClassVar[int]
    INNER_INDEX_FIELD_NUMBER: _ClassVar[int]
    DELAY_LEVEL_FIELD_NUMBER: _ClassVar[int]
    MAX_RECONSUME_TIMES_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    KEEP_UNIQUE_KEY_FIELD_NUMBER: _ClassVar[int]
    group: str
    topic: str
    physical_offset: int
    inner_index: int
    delay_level: int
    max_reconsume_times: int
    origin_message_id: str
    keep_unique_key: bool
    def __init__(self, group: _Optional[str] = ..., topic: _Optional[str] = ..., physical_offset: _Optional[int] = ..., inner_index: _Optional[int] = ..., delay_level: _Optional[int] = ..., max_reconsume_times: _Optional[int] = ..., origin_message_id: _Optional[str] = ..., keep_unique_key: bool = ...) -> None: ...

class SendBackResponse(_message.Message):
    __slots__ = ("topic", "dead_letter", "appended")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    APPENDED_FIELD_NUMBER: _ClassVar[int]
    topic: str
    dead_letter: bool
    appended: AppendBatchResponse
    def __init__(self, topic: _Optional[str] = ..., dead_letter: bool = ..., appended: _Optional[_Union[AppendBatchResponse, _Mapping]] = ...) -> None: ...

class ReadLogRequest(_message.Message):
    __slots__ = ("physical_offset", "max_bytes", "follow")
    PHYSICAL_OFFSET_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    physical_offset: int
    max_bytes: int
    follow: bool
    def __init__(self, physical_offset: _Optional[int] = ..., max_bytes: _Optional[int] = ..., follow: bool = ...) -> None: ...

class ReadLogResponse(_message.Message):
    __slots__ = ("physical_offset", "data", "committed_offset", "term")
    PHYSICAL_OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    physical_offset: int
    data: bytes
    committed_offset: int
    term: int
    def __init__(self, physical_offset: _Optional[int] = ..., data: _Optional[bytes] = ..., committed_offset: _Optional[int] = ..., term: _Optional[int] = ...) -> None: ...

class WatchCommittedRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchCommittedResponse(_message.Message):
    __slots__ = ("committed_offset", "term")
    COMMITTED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    committed_offset: int
    term: int
    def __init__(self, committed_offset: _Optional[int] = ..., term: _Optional[int] = ...) -> None: ...

class GetLogInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetLogInfoResponse(_message.Message):
    __slots__ = ("store_name", "advertised_address", "term", "recovered_end_offset", "min_physical_offset", "committed_offset", "flushed_offset", "max_physical_offset", "flush_mode", "segment_size_bytes", "max_message_size_bytes", "max_properties_size_bytes", "max_in_flight_bytes", "idempotence_window_batches", "free_disk_bytes", "min_free_disk_bytes", "remoting_address")
    STORE_NAME_FIELD_NUMBER: _ClassVar[int]
    ADVERTISED_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    RECOVERED_END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    MIN_PHYSICAL_OFFSET_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    FLUSHED_OFFSET_FIELD_NUMBER: _ClassVar[int]
    MAX_PHYSICAL_OFFSET_FIELD_NUMBER: _ClassVar[int]
    FLUSH_MODE_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_PROPERTIES_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_BYTES_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCE_WINDOW_BATCHES_FIELD_NUMBER: _ClassVar[int]
    FREE_DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    MIN_FREE_DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    REMOTING_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    store_name: str
    advertised_address: str
    term: int
    recovered_end_offset: int
    min_physical_offset: int
    committed_offset: int
    flushed_offset: int
    max_physical_offset: int
    flush_mode: FlushMode
    segment_size_bytes: int
    max_message_size_bytes: int
    max_properties_size_bytes: int
    max_in_flight_bytes: int
    idempotence_window_batches: int
    free_disk_bytes: int
    min_free_disk_bytes: int
    remoting_address: str
    def __init__(self, store_name: _Optional[str] = ..., advertised_address: _Optional[str] = ..., term: _Optional[int] = ..., recovered_end_offset: _Optional[int] = ..., min_physical_offset: _Optional[int] = ..., committed_offset: _Optional[int] = ..., flushed_offset: _Optional[int] = ..., max_physical_offset: _Optional[int] = ..., flush_mode: _Optional[_Union[FlushMode, str]] = ..., segment_size_bytes: _Optional[int] = ..., max_message_size_bytes: _Optional[int] = ..., max_properties_size_bytes: _Optional[int] = ..., max_in_flight_bytes: _Optional[int] = ..., idempotence_window_batches: _Optional[int] = ..., free_disk_bytes: _Optional[int] = ..., min_free_disk_bytes: _Optional[int] = ..., remoting_address: _Optional[str] = ...) -> None: ...
