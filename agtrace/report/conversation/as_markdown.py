"""A conversation in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from agtrace_schema.events import Outcome

from agtrace.report.conversation.contained import code, escaped, fenced, quoted
from agtrace.report.conversation.head import Fact, Head, masked, took, when
from agtrace.report.conversation.telling import Execution, Folded, Item, Mark, Passed, Request, Said, Turn
from agtrace.text.lines import cut
from agtrace.text.numbers import counted

_LINES = 6
"""The most lines that are shown of what a tool returned, unless all are wanted."""

_CHANGED_LINES = 40
"""The same of what a call changes in files."""

_LINE = 240
"""The most characters of each of them."""

OF_THE_PROGRAM = "message of the agent's program"
"""What the program of an agent added."""

_PLURALS = {
    OF_THE_PROGRAM: "messages of the agent's program",
    "line of tools": "lines of tools",
    "summary": "summaries",
}


def head(about: Head, found: Mapping[str, int]) -> Iterator[str]:
    """Yield the head, given what was masked."""
    yield f"# {escaped(about.title)}\n\n"
    yield "".join(f"- **{fact.name}:** {_fact(fact)}\n" for fact in (*about.facts, masked(found)))


def body(about: Head, items: Iterable[Item], *, thinking: bool, tools: bool) -> Iterator[str]:
    """Yield the conversation; `thinking` and `tools` tell whether thoughts, and calls in full, are part of it."""
    left = Counter[str]()
    speaking = False
    for item in items:
        match item:
            case Passed():
                left[OF_THE_PROGRAM] += 1
                continue
            case Folded() if not thinking:
                left["thought" if item.label == "Thinking" else "summary"] += 1
                continue
            case Said():
                yield "" if speaking else f"\n**{about.agent}**\n"
                yield f"\n{quoted(item.text)}\n"
            case Execution():
                yield from _call(item, tools, left)
            case _:
                yield _block(item)
        speaking = isinstance(item, (Said, Execution, Folded))
    yield from _left_out(left)


def _block(item: Turn | Request | Folded | Mark) -> str:
    match item:
        case Turn():
            return f"\n## Turn {item.number}{' · ' * bool(item.time)}{when(item.time)}{' · copied' * item.copied}\n"
        case Mark():
            return f"\n*{escaped(item.text)}*\n"
        case Request() | Folded():
            return f"\n**{item.label}**\n\n{quoted(item.text)}\n"


def _fact(fact: Fact) -> str:
    return " ".join(filter(None, (escaped(fact.says), code(fact.quoted))))


def _call(call: Execution, full: bool, left: Counter[str]) -> Iterator[str]:
    exit_code = f"exit code {call.exit_code}" if call.exit_code else ""
    ended = ", ".join(filter(None, (call.outcome, exit_code, took(call.duration_ms))))
    agent = f", sub-agent {code(call.agent)}" if call.agent else ""
    yield f"\n{code(call.tool)} {code(call.about)}".rstrip() + f": {ended}{agent}\n"
    if call.error:
        yield f"\nError: {code(call.error)}\n"
    if call.objection:
        yield f"\n**Refused**\n\n{quoted(call.objection)}\n"
    if full:
        yield from (f"\n{fenced(text)}\n" for text in (call.arguments, call.result or "") if text.strip())
        return
    yield from _shortened(call, left)


def _shortened(call: Execution, left: Counter[str]) -> Iterator[str]:
    """Yield the first lines of what a call changes in files and of its result, and how many more there are."""
    from agtrace.report.web.calls import arguments_of  # `agtrace show` needs none of it

    parts = list(arguments_of(call.given))
    change, unchanged = _first("\n".join(part.text for part in parts if part.is_change), _CHANGED_LINES)
    if change:
        yield f"\n{fenced(change, 'diff')}\n"
        arguments = sum(part.text.strip().count("\n") + 1 for part in parts if not part.is_change)
    else:
        arguments = call.arguments.strip().count("\n")  # beside the one that is shown
    lines, more = _first(call.result or "", 0 if change and call.outcome is Outcome.OK else _LINES)
    if lines:
        yield f"\n{fenced(lines)}\n"
    left_here = (
        (unchanged, "more line", "the change"),
        (more, "more line" if lines else "line", "the result"),
        (arguments, "line", "arguments"),
    )
    said = [f"{counted(number, what)} of {of}" for number, what, of in left_here if number]
    if said:
        yield f"\n*{' and '.join(said)} left out*\n"
    left["line of tools"] += unchanged + more + arguments


def _first(text: str, most: int) -> tuple[str, int]:
    """Return the first lines of a text, each cut, and the number of the others."""
    if not text.strip():
        return "", 0
    lines = text.strip("\n").split("\n")
    return "\n".join(cut(line, _LINE) for line in lines[:most]), max(len(lines) - most, 0)


def _left_out(left: Mapping[str, int]) -> Iterator[str]:
    """Yield what the conversation doesn't show."""
    said = left_out(left)
    if said:
        yield f"\n---\n\n*Left out: {said}.*\n"


def left_out(left: Mapping[str, int]) -> str:
    """Say how much a conversation doesn't show, given the numbers by noun; empty if that is nothing."""
    named = (
        counted(number, what) if what not in _PLURALS or number == 1 else f"{number:,} {_PLURALS[what]}"
        for what, number in left.items()
        if number
    )
    return ", ".join(named)
