"""`tidemark config …`: what the services would be set to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from tidemark.cli.output import Output, OutputOption, print_json, print_table

if TYPE_CHECKING:
    from pydantic_settings import BaseSettings

app = typer.Typer(no_args_is_help=True, help="Settings, as the environment gives them.")
_CLASSES = {  # service → module of its settings, below the services' package; and class
    "writer": ("writer.config", "WriterSettings"),
    "pipeline": ("indexer.pipeline.config", "PipelineSettings"),
    "query": ("indexer.query.config", "QuerySettings"),
}


@app.callback()
def _config() -> None:
    """Settings, as the environment gives them."""


@app.command(epilog="Example: TIDEMARK_FLUSH_MODE=async tidemark config show")
def show(output: OutputOption = Output.TABLE) -> None:
    """Show every setting of writer, pipeline and query, its value, and whether the environment gives it.

    What a service would read if it was started here now; one that runs has been started with its own environment, and
    `tidemark serve` sets store, addresses and a new store's file sizes itself.
    """
    from tidemark.client.settings import ClientSettings

    settings = {"client": _effective(ClientSettings)}
    for service, (module, name) in _CLASSES.items():
        found = _settings_class(module, name)
        if found is not None:
            settings[service] = _effective(found)
    if output is Output.JSON:
        print_json(settings)
        return
    rows = [
        (service, name, one["value"], "environment" if one["from_environment"] else "default")
        for service, values in settings.items()
        for name, one in values.items()
    ]
    print_table(("service", "setting", "value", "from"), rows)


def _settings_class(module: str, name: str) -> type[BaseSettings] | None:
    """None where the service is not installed."""
    import importlib

    from tidemark.cli.service import service_module

    try:
        found: type[BaseSettings] = getattr(importlib.import_module(service_module(module)), name)
    except ModuleNotFoundError:
        return None
    return found


def _effective(settings: type[BaseSettings]) -> dict[str, dict[str, Any]]:
    """By the environment's name. ArgumentIllegalError for a value that the service would refuse."""
    from pydantic import ValidationError

    from tidemark.errors import ArgumentIllegalError

    try:
        values = settings()
    except ValidationError as error:
        faults = "; ".join(f"{_name('.'.join(map(str, one['loc'])))}: {one['msg']}" for one in error.errors())
        raise ArgumentIllegalError(f"{settings.__name__} cannot be read: {faults}") from error
    as_json = values.model_dump(mode="json")
    return {
        _name(field): {"value": as_json[field], "from_environment": field in values.model_fields_set}
        for field in settings.model_fields
    }


def _name(field: str) -> str:
    return f"TIDEMARK_{field.upper()}" if field else "TIDEMARK_…"
