"""Group: what a member knows of its group, in all its roles."""

from __future__ import annotations

import ssl
from functools import partial
from typing import NamedTuple

from tidemark.replication.known_state import KnownState
from tidemark.replication.member_files import MemberFiles
from tidemark.replication.member_role import PublishedRole

from .config import WriterSettings
from .replication.group_metrics import GroupMetrics
from .replication.leadership import Leadership
from .replication.manual_leadership import ManualLeadership
from .replication.other_members import OtherMembers
from .rpc.member_channel import describe


class Group(NamedTuple):
    """known: the newest state that this member has heard of. leadership: how it becomes the writer."""

    known: KnownState
    others: OtherMembers
    leadership: Leadership
    role: PublishedRole
    metrics: GroupMetrics


def open_group(settings: WriterSettings, identity: str, files: MemberFiles, role: PublishedRole) -> Group:
    """Return the group of the member with *identity*, which has the lock of its store.

    Raises CorruptStoreError if the file with the group's state and its copy are both damaged.
    """
    credentials = settings.member_credentials(settings.tls_cert, settings.tls_key)
    others = OtherMembers(settings.other_members, partial(describe, credentials=credentials))
    known = KnownState(files)
    if settings.etcd_urls:
        leadership: Leadership = _open_elections(settings, identity, known, others, role)
    else:
        leadership = ManualLeadership(settings, identity, known, others)
    metrics = GroupMetrics(len(settings.members), known, leadership)
    return Group(known, others, leadership, role, metrics)


def _open_elections(
    settings: WriterSettings, identity: str, known: KnownState, others: OtherMembers, role: PublishedRole
) -> Leadership:
    from tidemark.replication.etcd.gateway import EtcdGateway, EtcdLogin  # HTTP is imported only if it is used
    from tidemark.replication.etcd.group_store import EtcdGroupStore

    from .replication.elected_leadership import ElectedLeadership

    context = None
    if settings.group_store_ca is not None or settings.group_store_cert is not None:
        context = ssl.create_default_context(cafile=settings.group_store_ca)
        if settings.group_store_cert is not None:
            context.load_cert_chain(settings.group_store_cert, settings.group_store_key)
    login = None
    if settings.group_store_password_file is not None:
        login = EtcdLogin(settings.group_store_user, settings.group_store_password_file)
    ttl_ms = settings.lease_ttl_ms
    gateway = EtcdGateway(settings.etcd_urls, timeout_s=min(2.0, ttl_ms / 8_000), context=context, login=login)
    group_store = EtcdGroupStore(gateway, settings.group, known, ttl_ms=ttl_ms)
    return ElectedLeadership(settings, identity, known, others, group_store, on_renewed=role.extend)
