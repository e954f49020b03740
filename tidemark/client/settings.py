"""Client settings from the environment: service addresses, TLS files and tokens (TIDEMARK_WRITER_ADDRESS and so on)."""

from __future__ import annotations

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class ClientSettings(BaseSettings):
    """Addresses of the services, and credentials."""

    model_config = SettingsConfigDict(env_prefix="TIDEMARK_", frozen=True)

    writer_address: str = "127.0.0.1:8081"
    query_url: str = "http://127.0.0.1:8080"
    tls_ca: str | None = None  # clients read this field and the next four with `Credentials.from_environment`
    tls_cert: str | None = None
    tls_key: str | None = None
    token: SecretStr | None = None
    token_file: str | None = None
    client_wire: str = "remoting"  # `wire.default_wire` reads the variable directly
    grpc_proxy: bool = False  # `channel.proxy_option` reads the variable directly
