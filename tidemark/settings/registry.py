"""Registry of the settings classes of all services and the client. Each class is imported on request."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_settings import BaseSettings

PREFIX = "TIDEMARK_"
CLIENT = "client"
_IN_SERVICES = {  # service → module in the package of services, class
    "writer": ("writer.config", "WriterSettings"),
    "pipeline": ("indexer.pipeline.config", "PipelineSettings"),
    "query": ("indexer.query.config", "QuerySettings"),
    "attach": ("indexer.attach.config", "AttachSettings"),
}
SERVICES = tuple(_IN_SERVICES)


def service_module(name: str) -> str:
    """Return the module of `writer` or `indexer`, in `tidemark_services` if a wheel is installed, else `services`."""
    package = "tidemark_services" if importlib.util.find_spec("tidemark_services") else "services"
    return f"{package}.{name}"


def settings_class(name: str) -> type[BaseSettings]:
    """Return the class of a service or of `client`. Raises ModuleNotFoundError if it is not installed."""
    if name == CLIENT:
        module, class_name = "tidemark.client.settings", "ClientSettings"
    else:
        module, class_name = _IN_SERVICES[name]
        module = service_module(module)
    found: type[BaseSettings] = getattr(importlib.import_module(module), class_name)
    return found


def variable(field: str) -> str:
    """Return the environment variable of a field."""
    return PREFIX + field.upper()
