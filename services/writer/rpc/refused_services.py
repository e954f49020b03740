"""The services of a process that does not append: they exist, and an interceptor refuses all their methods."""

from __future__ import annotations

import grpc

from tidemark.v1 import commit_log_pb2_grpc, topics_pb2_grpc

_Appends, _Topics = commit_log_pb2_grpc.CommitLogServiceServicer, topics_pb2_grpc.TopicServiceServicer


def add_refused_services(server: grpc.aio.Server) -> None:
    """Add the writer's services, whose methods are never called."""
    appends, topics = _Appends(), _Topics()  # type: ignore[abstract]
    commit_log_pb2_grpc.add_CommitLogServiceServicer_to_server(  # type: ignore[no-untyped-call, unused-ignore]
        appends, server
    )
    topics_pb2_grpc.add_TopicServiceServicer_to_server(  # type: ignore[no-untyped-call, unused-ignore]
        topics, server
    )
