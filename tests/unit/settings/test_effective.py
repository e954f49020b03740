"""Values with their sources."""

from __future__ import annotations

import pytest
from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from tidemark.settings.door import SettingsRefusedError, read_settings
from tidemark.settings.effective import Setting, SettingSource, effective

SECRET = "correct horse battery staple"


class SomeSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="TIDEMARK_", cli_kebab_case=True)

    token: SecretStr = Field(SecretStr(SECRET), min_length=8)
    store_name: str = "tidemark-0"


@pytest.mark.parametrize("source", [SettingSource.ENVIRONMENT, SettingSource.DEFAULT, SettingSource.COMMAND_LINE])
def test_a_secret_is_never_shown(monkeypatch: pytest.MonkeyPatch, source: SettingSource) -> None:
    """The source does not matter."""
    if source is SettingSource.ENVIRONMENT:
        monkeypatch.setenv("TIDEMARK_TOKEN", SECRET)
    shown = effective(SomeSettings, ["--token", SECRET] if source is SettingSource.COMMAND_LINE else [])
    assert shown["TIDEMARK_TOKEN"] == Setting("**********", source)
    assert SECRET not in str(shown)


def test_a_refused_secret_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error states only the fault."""
    monkeypatch.setenv("TIDEMARK_TOKEN", "hunter2")
    with pytest.raises(SettingsRefusedError) as refused:
        read_settings("service", SomeSettings)
    (line,) = refused.value.lines
    assert line.startswith("service: TIDEMARK_TOKEN: ")
    assert "hunter2" not in line
