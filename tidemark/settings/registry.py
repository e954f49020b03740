"""The one list of settings classes: each service's, and the client's. A class is imported when it is asked for."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_settings import BaseSettings

PREFIX = "TIDEMARK_"
CLIENT = "client"
_IN_SERVICES = {  # service → module below the services' package, and class
    "writer": ("writer.config", "WriterSettings"),
    "pipeline": ("indexer.pipeline.config", "PipelineSettings"),
    "query": ("indexer.query.config", "QuerySettings"),
    "attach": ("indexer.attach.config", "AttachSettings"),
}
SERVICES = tuple(_IN_SERVICES)


def service_module(name: str) -> str:
    """Module of `writer` or `indexer`: in `tidemark_services` where a wheel is installed, in a checkout `services`."""
    package = "tidemark_services" if importlib.util.find_spec("tidemark_services") else "services"
    return f"{package}.{name}"


def settings_class(name: str) -> type[BaseSettings]:
    """Of a service, or of `client`; ModuleNotFoundError where it is not installed."""
    if name == CLIENT:
        module, class_name = "tidemark.client.settings", "ClientSettings"
    else:
        module, class_name = _IN_SERVICES[name]
        module = service_module(module)
    found: type[BaseSettings] = getattr(importlib.import_module(module), class_name)
    return found


def variable(field: str) -> str:
    """A field's name in the environment."""
    return PREFIX + field.upper()
