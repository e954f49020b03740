"""Settings of a member of a replication group."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings

from tidemark.tls.credentials import Credentials
from tidemark.tls.settings import PemFile

_MEMBER = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MANUAL = "manual"
_ETCD_EXAMPLE = "etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379"
_ETCD_SCHEMES = {"etcd": "http", "etcds": "https"}
_EXAMPLE = "a=10.0.0.1:8081,b=10.0.0.2:8081"


class ReplicationMode(enum.StrEnum):
    """When an append is committed."""

    OFF = "off"
    ASYNC = "async"
    SYNC = "sync"


class GroupSettings(BaseSettings):
    """The part of the writer's settings that concerns replication."""

    replication: ReplicationMode = Field(
        ReplicationMode.OFF,
        description="sync: an append is answered once all replicas in sync have it on disk; async: replicas follow",
    )
    member: str = Field("", description="name of this member of the group")
    group_members: str = Field(
        "", description=f"names and writer addresses of all members of the group, for example {_EXAMPLE}"
    )
    min_in_sync: int = Field(
        2, ge=1, le=16, description="sync: members, with the writer, that must have an append; else it is refused"
    )
    replica_timeout_ms: int = Field(
        3_000, ge=10, le=600_000, description="sync: slower appends are answered with FLUSH_SLAVE_TIMEOUT"
    )
    replica_lag_ms: int = Field(
        10_000, ge=100, le=600_000, description="sync: a replica that is behind for this long is no longer waited for"
    )
    replica_buffer_bytes: int = Field(
        64 << 20, ge=1 << 20, le=16 << 30, description="newest bytes of the log that the writer keeps for replicas"
    )
    replica_retain_bytes: int = Field(
        10 << 30,
        ge=0,
        description="newest bytes of the log that are kept beyond retention_hours while another member may still have "
        "to copy them; 0: none",
    )
    compare_interval_s: float = Field(
        86_400,
        ge=0,
        le=1e9,
        description="time between two comparisons of the log with those of other members; 0: never",
    )
    compare_max_bytes_per_s: int = Field(
        100 << 20, ge=1 << 20, description="bytes of the log that a comparison reads in a second"
    )

    group: str = Field("tidemark", pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="name of the group in its store")
    group_store: str = Field(
        _MANUAL,
        description=f"where the group's state is: {_MANUAL} (an operator chooses the writer), or the members of etcd, "
        f"which lets the group elect it, as in {_ETCD_EXAMPLE} (etcds:// for TLS)",
    )
    lease_ttl_ms: int = Field(
        10_000, ge=1_000, le=600_000, description="etcd: a writer that is silent for this long is replaced"
    )
    yield_when_alone: bool = Field(
        True, description="etcd: a writer that reaches too few replicas gives up its role if these reach each other"
    )
    group_store_ca: PemFile = Field(None, description="etcd: CAs of its certificates, PEM; unset: the default CAs")
    group_store_cert: PemFile = Field(None, description="etcd: client certificate, PEM; requires group_store_key")
    group_store_key: PemFile = Field(None, description="etcd: private key of group_store_cert, PEM, without a password")
    group_store_user: str = Field("", description="etcd: user; requires group_store_password_file")
    group_store_password_file: PemFile = Field(
        None, description="etcd: file with the user's password in its first line"
    )

    tls_ca: PemFile = Field(
        None, description="CAs of the certificates of other services, PEM; unset: no TLS to them, unless tls://"
    )
    token_file: PemFile = Field(
        None, description="token for calls to other services, unless a request brings one of its own"
    )

    @property
    def is_replicated(self) -> bool:
        """Return True for a member of a group."""
        return self.replication is not ReplicationMode.OFF

    @property
    def members(self) -> Mapping[str, str]:
        """The writer addresses of all members, by name. Raises ValueError."""
        found: dict[str, str] = {}
        for entry in filter(None, (one.strip() for one in self.group_members.split(","))):
            name, separator, address = entry.partition("=")
            if not separator or _MEMBER.fullmatch(name) is None or name in found:
                raise ValueError(
                    f"group_members has the entry {entry!r}: expected name=host:port for each member, as in {_EXAMPLE}"
                )
            if not address.removeprefix("tls://").rpartition(":")[2].isdecimal():
                raise ValueError(f"group_members has the address {address!r}: expected host:port")
            found[name] = address
        return found

    @property
    def other_members(self) -> Mapping[str, str]:
        """The writer addresses of the other members, by name."""
        return {name: address for name, address in self.members.items() if name != self.member}

    @property
    def etcd_urls(self) -> Sequence[str]:
        """The base URLs of etcd's members; none for the manual store. Raises ValueError."""
        if self.group_store == _MANUAL:
            return ()
        scheme, _, addresses = self.group_store.partition("://")
        hosts = [address.strip() for address in addresses.split(",")]
        is_legal = all(re.fullmatch(r"[^\s/@?#:]+:[0-9]{1,5}|\[[0-9a-fA-F:]+\]:[0-9]{1,5}", host) for host in hosts)
        if scheme not in _ETCD_SCHEMES or not is_legal:
            raise ValueError(f"group_store is {self.group_store!r}: expected {_MANUAL}, or {_ETCD_EXAMPLE}")
        return [f"{_ETCD_SCHEMES[scheme]}://{host}" for host in hosts]

    def member_credentials(self, cert: Path | None, key: Path | None) -> Credentials:
        """Return the credentials for calls to other members. cert, key: of this member, which it shows as a client."""
        return Credentials(ca=self.tls_ca, cert=cert, key=key, token_file=self.token_file)

    def check_group(self, *, is_flush_async: bool) -> None:
        """Raise ValueError for settings that contradict each other."""
        if not self.is_replicated:
            return
        self._check_group_store()
        members = self.members
        if self.member not in members:
            raise ValueError(
                f"member is {self.member!r}, and must be a name of group_members ({', '.join(members) or 'none'})"
            )
        if self.replication is ReplicationMode.SYNC and is_flush_async:
            raise ValueError("replication=sync requires flush_mode=sync, because replicas acknowledge synced bytes")
        if self.replication is ReplicationMode.SYNC and self.min_in_sync > len(members):
            raise ValueError(
                f"min_in_sync is {self.min_in_sync}, but group_members has {len(members)}: all appends would be refused"
            )

    def _check_group_store(self) -> None:
        """Raise ValueError for settings of the group's store that contradict each other."""
        is_etcd = bool(self.etcd_urls)
        for one, other in (("cert", "key"), ("key", "cert"), ("user", "password_file"), ("password_file", "user")):
            if getattr(self, f"group_store_{one}") and not getattr(self, f"group_store_{other}"):
                raise ValueError(f"group_store_{one} is set, but group_store_{other} is not")
        for name in ("ca", "cert", "user"):
            if getattr(self, f"group_store_{name}") and not is_etcd:
                raise ValueError(f"group_store_{name} is set, but group_store is {_MANUAL}")
