"""Where agtrace keeps its data and looks for its configuration, unless it is told otherwise."""

from __future__ import annotations

import platformdirs
import pytest

from agtrace.settings.environment import platform_config_dir, platform_data_dir


@pytest.mark.parametrize(
    "variables", [{}, {"XDG_DATA_HOME": "/x/data", "XDG_CONFIG_HOME": "/x/config"}, {"XDG_DATA_HOME": ""}]
)
def test_the_folders_are_those_of_the_platform(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert platform_data_dir() == platformdirs.user_data_path("agtrace", appauthor=False)
    assert platform_config_dir() == platformdirs.user_config_path("agtrace", appauthor=False)
