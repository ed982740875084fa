"""Printing an answer: as JSON for a program, or rendered for a person."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO


def leave(value: Any, as_json: bool, for_person: Callable[[], object]) -> None:
    """Print a value as JSON, or let `for_person` print it, which imports what it needs of `agtrace.render`."""
    if as_json:
        print_json(value)
    else:
        for_person()


def leave_lines(value: Any, as_json: bool, lines: Iterable[str]) -> None:
    """Print a value as JSON, or these lines for a person."""
    if as_json:
        print_json(value)
    else:
        print_lines(lines)


def print_lines(lines: Iterable[str], stream: TextIO | None = None) -> None:
    """Print lines, by default on stdout."""
    stream = stream or sys.stdout
    for line in lines:
        stream.write(f"{line}\n")
    stream.flush()


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print a value as JSON, with every control character escaped, since some are commands to a terminal."""
    from agtrace.text.lines import UNSEEN

    has_all_letters = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
    text = json.dumps(value, ensure_ascii=not has_all_letters, indent=indent)
    unseen = re.compile(f"[{UNSEEN}\u2028\u2029]")
    sys.stdout.write(unseen.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n")
    sys.stdout.flush()
