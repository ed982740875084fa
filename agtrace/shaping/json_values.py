"""JSON values made smaller or flatter, with a record of what is left out."""

from __future__ import annotations

from typing import Any

from agtrace.text.lines import cut


def shortened(value: Any, most: int, path: str = "") -> tuple[Any, list[str]]:
    """Cut every string of a JSON value to `most` characters, including keys; return the value and where it was cut."""
    if isinstance(value, str):
        short = cut(value, most)
        return short, [] if short == value else [f"{path}: {most} of {len(value)} chars"]
    if isinstance(value, dict):
        fields: dict[str, Any] = {}
        told: list[str] = []
        for key, item in value.items():
            name = cut(key, most)
            at = f"{path}.{name}" if path else name
            if name in fields:  # another key with the same beginning
                told.append(f"{at}: left out")
                continue
            told += [] if name == key else [f"{at}: {most} of {len(key)} chars of the name"]
            fields[name], below = shortened(item, most, at)
            told += below
        return fields, told
    if isinstance(value, list):
        entries = [shortened(item, most, f"{path}[{number}]") for number, item in enumerate(value)]
        return [item for item, _ in entries], [p for _, paths in entries for p in paths]
    return value, []


def flattened(value: Any, levels: int) -> Any:
    """Write objects nested deeper than `levels` as dotted keys of the last level; values are preserved."""
    if isinstance(value, list):
        return [flattened(item, levels) for item in value]
    if not isinstance(value, dict):
        return value
    if levels > 1:
        return {key: flattened(item, levels - 1) for key, item in value.items()}
    return dict(pair for key, item in value.items() for pair in _dotted(str(key), item))


def _dotted(path: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        return [pair for key, item in value.items() for pair in _dotted(f"{path}.{key}", item)]
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return [pair for number, item in enumerate(value) for pair in _dotted(f"{path}.{number}", item)]
    return [(path, value)]
