"""Where a client finds the services when it is not told: TIDEMARK_WRITER_ADDRESS and TIDEMARK_QUERY_URL."""

from __future__ import annotations

from pydantic_settings import BaseSettings, SettingsConfigDict


class ClientSettings(BaseSettings):
    """What a client dials."""

    model_config = SettingsConfigDict(env_prefix="TIDEMARK_", frozen=True)

    writer_address: str = "127.0.0.1:8081"
    query_url: str = "http://127.0.0.1:8080"
