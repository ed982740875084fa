"""Laws of editing settings: what was put in is taken out to the byte, and nothing else ever changes."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import example, given
from hypothesis import settings as within
from hypothesis import strategies as st

from agtrace.upkeep import client_settings as change
from agtrace.upkeep.clients import CLIENTS, Machine
from tests.depth import examples


class Written(NamedTuple):
    """A value, and a text that says it."""

    text: str
    value: Any


NEWLINES = ("\n", "\r\n")
_WORDS = st.sampled_from(["a", "b", "mcpServers", "servers", "c d", "//", "/*", "é\\", '"', "{", ","])
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), _WORDS, st.sampled_from([0.5, -1e30]))


_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_WORDS, inner, max_size=3))
_OBJECTS = st.dictionaries(_WORDS, _VALUES, max_size=3)
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[][{}:,]')


@st.composite
def settings(draw: st.DrawFn, *, comments: bool = True) -> Written:
    """Draw the settings of a client as somebody may have typed them: an object that may have servers."""
    newline = draw(st.sampled_from(NEWLINES))
    parts = ["", "", " ", "\t", newline, newline + "  ", newline + "\t\t"]
    if comments:
        parts += ["/* c, } */", f"/*{newline}*/", f"// d {{{newline}", f"  // e{newline}    "]
    space = cycle(draw(st.lists(st.sampled_from(parts), min_size=1, max_size=9)))
    value = draw(_OBJECTS)
    if draw(st.booleans()):
        value["mcpServers"] = draw(_OBJECTS)
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    trailing = comments and draw(st.booleans())

    def typed(token: re.Match[str]) -> str:
        if token[0].startswith('"'):
            return token[0]
        last = trailing and token[0] in "]}" and text[token.start() - 1] not in "[{"
        return f"{next(space)}{',' * last}{next(space)}{token[0]}{next(space)}"

    return Written(draw(st.sampled_from(["", chr(0xFEFF)])) + _TOKEN.sub(typed, text), value)


def edited(client: str, text: str, edit: Callable[[Machine], change.Change]) -> str:
    """A text after a change of settings that hold it."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), {}, "linux")
        file = CLIENTS[client].files(machine)[0]
        file.parent.mkdir(parents=True)
        file.write_bytes(text.encode())
        return edit(machine).after


def put(client: str, text: str) -> str:
    """A text with our entry."""
    return edited(
        client, text, lambda machine: change.adding(CLIENTS[client], machine, "/opt/bin/agtrace", {"A": "潮"})
    )


def drop(client: str, text: str) -> str:
    """A text without our entry."""
    return edited(client, text, lambda machine: change.removing(CLIENTS[client], machine))


@within(max_examples=examples(60), deadline=None)
@given(settings())
@example(Written("{}", {}))
@example(Written('{"mcpServers": {\n}}', {"mcpServers": {}}))
def test_json_with_comments_gets_our_entry_and_loses_it_to_the_byte(drawn: Written) -> None:
    """Space in an object that has nothing else goes, and servers that were empty."""
    servers = drawn.value.get("mcpServers", {})
    if not isinstance(servers, dict):
        with pytest.raises(change.Refused):
            put("cursor", drawn.text)
        return
    after = put("cursor", drawn.text)
    assert put("cursor", after) == after
    again = drop("cursor", after)
    if servers or (drawn.value and "mcpServers" not in drawn.value):
        assert again == drawn.text
    assert drop("cursor", again) == again


@within(max_examples=examples(60), deadline=None)
@given(settings(comments=False))
def test_all_else_says_what_it_said(drawn: Written) -> None:
    servers = drawn.value.get("mcpServers", {})
    if isinstance(servers, dict):
        after = json.loads(put("cursor", drawn.text).removeprefix("\ufeff"))
        ours = after["mcpServers"].pop("agtrace")
        assert ours == CLIENTS["cursor"].entry("/opt/bin/agtrace", {"A": "潮"})
        assert after == {**drawn.value, "mcpServers": servers}


@within(max_examples=examples(50), deadline=None)
@given(settings(), st.text(max_size=20))
def test_whatever_a_file_holds_is_read_or_refused(drawn: Written, junk: str) -> None:
    cut = drawn.text[: len(junk)] + junk + drawn.text[len(junk) + 1 :]
    for text in (junk, cut):
        for client in ("cursor", "goose"):
            with suppress(change.Refused):
                after = put(client, text)
                assert put(client, after) == after


_LINES = st.sampled_from([
    "A: 1", "B: 'x: y' # c", "C: {d: [1, 2], e: }", 'D: "q"', "E:", "F: |\n  text\n  # no comment\n", "G: >-\n  a\n  b",
    "H:\n- 1\n- b: 2", "I:\n    J:\n        K: ~", "# a comment", "", "  # another", "L: &l [1]", "M: *l",
])  # fmt: skip
_SERVERS = st.sampled_from([
    "extensions:", "extensions: {}", "extensions: # mine", "extensions: {a: {b: 1}, c: 2}", 'extensions: { "a": {} }',
    "extensions:\n  # first\n  dev:\n    type: builtin\n\n  # second\n  mem: {x: 1}",
    "extensions:\n      dev:\n        cmd: x\n        args:\n        - y\n", "extensions:\n  a: |\n    t\n\n",
    '"extensions":\n  a: 1', "extensions: &e\n  a: 1",
])  # fmt: skip


@st.composite
def yaml_settings(draw: st.DrawFn) -> str:
    """Draw settings in YAML: lines before and after the servers, if there are any."""
    before, after = (draw(st.lists(_LINES, max_size=3, unique=True)) for _ in range(2))
    servers = draw(st.lists(_SERVERS, max_size=1))
    head = draw(st.sampled_from([[], ["---"], ["# head"]]))
    text = "\n".join([*head, *before, *servers, *(line for line in after if line not in before or not line.strip())])
    text += draw(st.sampled_from(["", "\n", "\n\n", "\n# end\n"]))
    return text.replace("\n", draw(st.sampled_from(NEWLINES)))


@within(max_examples=examples(60), deadline=None)
@given(yaml_settings())
@example("extensions:")
@example("")
def test_yaml_gets_our_entry_and_loses_it_to_the_byte(text: str) -> None:
    """Servers that were empty go, and the last line gets an end."""
    try:
        before = yaml.safe_load(text) or {}
        after = put("goose", text)
    except (yaml.YAMLError, change.Refused):
        return
    servers = before.get("extensions") or {}
    entry = CLIENTS["goose"].entry("/opt/bin/agtrace", {"A": "潮"})
    assert yaml.safe_load(after) == {**before, "extensions": {**servers, "agtrace": entry}}
    assert put("goose", after) == after
    again = drop("goose", after)
    assert again.rstrip("\r\n") == text.rstrip("\r\n") or not servers
    assert yaml.safe_load(again) in ({**before, "extensions": servers}, before, {**before} or None) or not servers


def test_aliases_within_aliases_cost_nothing() -> None:
    """Settings whose values would be 10^27 if they were written out."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 27)]
    text = "\n".join(lines) + "\n"
    assert drop("goose", put("goose", text)) == text


def test_what_a_user_wrote_into_our_entry_goes_with_it_blank_lines_included() -> None:
    text = "extensions:\n  dev:\n    x: 1\n  agtrace:\n    cmd: y\n\n    # mine\n    args:\n    - a\n\n# end\nz: 1\n"
    assert drop("goose", text) == "extensions:\n  dev:\n    x: 1\n\n# end\nz: 1\n"
