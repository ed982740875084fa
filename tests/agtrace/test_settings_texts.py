"""Laws of editing settings: what was put in is taken out to the byte, and nothing else ever changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import example, given
from hypothesis import settings as within
from hypothesis import strategies as st

from agtrace.upkeep.clients import json_text, yaml_text
from agtrace.upkeep.clients.jsonc import parse
from agtrace.upkeep.clients.refusal import Refused
from tests.depth import examples

ENTRY = {"type": "stdio", "command": "/opt/bin/agtrace", "args": ["mcp"], "env": {"A": 'b "c" 潮'}}
LESS = {"type": "stdio", "command": "/opt/agtrace", "args": []}


class Written(NamedTuple):
    """A value, and a text that says it."""

    text: str
    value: Any


NEWLINES = ("\n", "\r\n")
_WORDS = st.sampled_from(["a", "b", "mcpServers", "servers", "c d", "//", "/*", "é\\", '"', "{", ","])
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), _WORDS, st.sampled_from([0.5, -1e30]))


@st.composite
def spaces(draw: st.DrawFn, newline: str, *, comments: bool) -> str:
    """Draw what may be between two tokens."""
    parts = ["", "", " ", "\t", newline, newline + "  ", newline + "\t\t"]
    if comments:
        parts += ["/* c, } */", f"/*{newline}*/", f"// d {{{newline}", f"  // e{newline}    "]
    return "".join(draw(st.lists(st.sampled_from(parts), max_size=3)))


@st.composite
def written(draw: st.DrawFn, newline: str, *, comments: bool, deep: int = 2) -> Written:
    """Draw a JSON value as somebody may have typed it."""
    if deep == 0 or draw(st.booleans()):
        value = draw(_SCALARS)
        return Written(json.dumps(value, ensure_ascii=draw(st.booleans())), value)
    if draw(st.booleans()):
        items = draw(st.lists(written(newline, comments=comments, deep=deep - 1), max_size=2))
        return Written(draw(_between("[]", [item.text for item in items], newline, comments)), [i.value for i in items])
    return draw(objects(newline, comments=comments, deep=deep - 1))


@st.composite
def objects(draw: st.DrawFn, newline: str, *, comments: bool, deep: int = 2, names: Any = _WORDS) -> Written:
    """Draw an object."""
    found = draw(st.dictionaries(names, written(newline, comments=comments, deep=deep), max_size=3))
    space = spaces(newline, comments=comments)
    members = [f"{json.dumps(name)}{draw(space)}:{draw(space)}{value.text}" for name, value in found.items()]
    return Written(
        draw(_between("{}", members, newline, comments)), {name: value.value for name, value in found.items()}
    )


@st.composite
def _between(draw: st.DrawFn, brackets: str, items: list[str], newline: str, comments: bool) -> str:
    space = spaces(newline, comments=comments)
    inside = ",".join(f"{draw(space)}{item}{draw(space)}" for item in items) or draw(space)
    after = "," + draw(space) if items and comments and draw(st.booleans()) else ""
    return brackets[0] + inside + after + brackets[1]


@st.composite
def settings(draw: st.DrawFn, *, comments: bool = True) -> Written:
    """Draw the settings of a client: an object that may have servers."""
    newline = draw(st.sampled_from(NEWLINES))
    space = spaces(newline, comments=comments)
    whole = draw(objects(newline, comments=comments))
    if draw(st.booleans()) and "mcpServers" not in whole.value:
        servers = draw(objects(newline, comments=comments, deep=1))
        rest = json.dumps(whole.value)[1:-1]
        name = f'"mcpServers"{draw(space)}:{draw(space)}{servers.text}'
        first = draw(st.booleans())
        text = (f"{name},{rest}" if first else f"{rest},{name}") if rest else name
        whole = Written(f"{{{draw(space)}{text}{draw(space)}}}", {**whole.value, "mcpServers": servers.value})
    return Written(f"{draw(st.sampled_from(['', chr(0xFEFF)]))}{draw(space)}{whole.text}{draw(space)}", whole.value)


@within(max_examples=examples(100), deadline=None)
@given(settings())
def test_settings_in_json_are_read_as_they_are_written(drawn: Written) -> None:
    value = parse(drawn.text)
    assert value is not None and value.content == drawn.value


@within(max_examples=examples(100), deadline=None)
@given(settings(comments=False))
def test_plain_json_is_read_as_python_reads_it_strictly_too(drawn: Written) -> None:
    value = parse(drawn.text, comments=False, commas=False)
    assert value is not None and value.content == json.loads(drawn.text.removeprefix("\ufeff"))


@within(max_examples=examples(100), deadline=None)
@given(settings(), st.sampled_from([ENTRY, LESS]), st.sampled_from([("mcpServers",), ("a", "servers")]))
@example(Written("{}", {}), ENTRY, ("mcpServers",))
@example(Written('{"mcpServers": {\n}}', {"mcpServers": {}}), ENTRY, ("mcpServers",))
def test_what_was_put_into_json_is_taken_out_to_the_byte(
    drawn: Written, entry: dict[str, Any], path: tuple[str, ...]
) -> None:
    if len(path) > 1 and not isinstance(drawn.value.get(path[0]), dict):
        path = path[-1:]
    try:
        after = json_text.put(drawn.text, path, "agtrace", entry)
    except Refused:
        assert not isinstance(_below(drawn.value, path), dict), "only servers that aren't an object are refused"
        return
    value = parse(after)
    assert value is not None
    expected = json.loads(json.dumps(drawn.value))
    inner = expected
    for step in path:
        inner = inner.setdefault(step, {})
    inner["agtrace"] = entry
    assert value.content == expected
    assert json_text.put(after, path, "agtrace", entry) == after
    assert json_text.drop(after, path, "agtrace") == drawn.text
    assert json_text.rest(after, path, "agtrace") == json_text.rest(drawn.text, path, "agtrace")


def _below(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if not isinstance(value, dict):
            return value
        value = value.get(step, {})
    return value


@within(max_examples=examples(50), deadline=None)
@given(settings(), st.text(max_size=20))
def test_whatever_a_file_holds_is_read_or_refused(drawn: Written, junk: str) -> None:
    cut = drawn.text[: len(junk)] + junk + drawn.text[len(junk) + 1 :]
    for text in (junk, cut):
        for edit in (json_text.put, yaml_text.put):
            try:
                after = edit(text, ("mcpServers",), "agtrace", ENTRY)
            except Refused:
                continue
            reader: Callable[..., Any] = json_text.servers if edit is json_text.put else yaml_text.servers
            assert "agtrace" in reader(after, ("mcpServers",))


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


@within(max_examples=examples(100), deadline=None)
@given(yaml_settings())
@example("extensions:")
@example("")
def test_what_was_put_into_yaml_is_taken_out_to_the_byte(text: str) -> None:
    try:
        before = yaml.safe_load(text) or {}
    except yaml.YAMLError:
        with pytest.raises(Refused):
            yaml_text.put(text, ("extensions",), "agtrace", ENTRY)
        return
    after = yaml_text.put(text, ("extensions",), "agtrace", ENTRY)
    if yaml_text.rest(after, ("extensions",), "agtrace") != yaml_text.rest(text, ("extensions",), "agtrace"):
        assert "|" in text and not text.endswith("\n"), "a literal without the end of its last line, which gets one"
        return
    assert yaml.safe_load(after) == {**before, "extensions": {**(before.get("extensions") or {}), "agtrace": ENTRY}}
    assert yaml_text.put(after, ("extensions",), "agtrace", ENTRY) == after
    assert yaml_text.drop(after, ("extensions",), "agtrace") == text
    assert yaml_text.rest(after, ("extensions",), "agtrace") == yaml_text.rest(text, ("extensions",), "agtrace")
    again = yaml_text.put(after, ("extensions",), "agtrace", LESS)
    assert yaml.safe_load(again)["extensions"]["agtrace"] == {**ENTRY, **LESS}
    assert yaml_text.rest(again, ("extensions",), "agtrace") == yaml_text.rest(text, ("extensions",), "agtrace")


def test_aliases_within_aliases_cost_nothing() -> None:
    """Settings whose values would be 10^27 if they were written out are compared as they are written."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 27)]
    text = "\n".join(lines) + "\n"
    after = yaml_text.put(text, ("extensions",), "agtrace", ENTRY)
    assert yaml_text.rest(after, ("extensions",), "agtrace") == yaml_text.rest(text, ("extensions",), "agtrace")
    assert yaml_text.drop(after, ("extensions",), "agtrace") == text
