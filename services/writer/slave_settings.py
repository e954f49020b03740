"""Settings of a writer whose log slaves of RocketMQ copy."""

from __future__ import annotations

from pydantic import Field

from tidemark.remoting_server.settings import RemotingSettings, bound_address, require_address

VIP_OFFSET = 2  # slaves ask for topics at the broker's port minus this, RocketMQ's "VIP channel"


class SlaveSettings(RemotingSettings):
    """The part of the writer's settings that concerns slaves."""

    slaves_listen: str = Field(
        "",
        description="address:port at which slaves of RocketMQ copy the log, usually port 10913; requires "
        "writer_remoting_listen, and neither TLS nor an access file; empty: off",
    )
    max_slaves: int = Field(64, ge=1, le=1_024, description="connections of slaves; further ones are closed")
    slaves_address: str = Field("", description="host:port of slaves_listen for slaves; empty: slaves_listen")

    def check_slaves(self, **contradicting: bool) -> None:
        """Raise ValueError for settings that contradict each other. contradicting: by name, whether each is set."""
        require_address("slaves_listen", self.slaves_listen, is_route=False)
        require_address("slaves_address", self.slaves_address, is_route=True)
        if not self.slaves_listen:
            return
        for name, is_set in contradicting.items():
            if is_set:
                raise ValueError(
                    f"slaves_listen is set, and {name}, too: RocketMQ's protocol for slaves has neither authentication "
                    "nor TLS nor elections"
                )
        port = self.writer_remoting_listen.rpartition(":")[2]
        if not port.isdecimal() or int(port) <= VIP_OFFSET:
            raise ValueError(
                f"slaves_listen requires writer_remoting_listen with a port above {VIP_OFFSET}, usually 10911: slaves "
                f"ask it and the port minus {VIP_OFFSET} for topics and offsets"
            )

    def slave_address(self, bound_port: int) -> str:
        """Return host:port for slaves."""
        return bound_address(self.slaves_address, self.slaves_listen, bound_port) or ""
