"""The states, transitions and errors of `states.py` are those of the specification, row by row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agtrace.pruning.states import (
    ANY_REQUEST,
    BY_CONDITION,
    EVENTS,
    FAULTS,
    TERMINAL,
    TRANSITIONS,
    Req,
    Run,
    State,
    Transition,
)

SPECIFICATION = (Path(__file__).parent / "specification.md").read_text(encoding="utf-8")
STATES: dict[str, State] = {**{str(state): state for state in Run}, **{str(state): state for state in Req}}

_NAME = re.compile(r"`((?:run|req):(?:\w+|\*))`")


def table(title: str) -> list[list[str]]:
    """Return the rows of a table as lists of cells."""
    section = re.split(r"^## ", SPECIFICATION, flags=re.MULTILINE)
    (found,) = (part for part in section if part.startswith(f"{title}\n"))
    _, _, *rows = (line for line in found.splitlines() if line.startswith("|"))
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def states(cell: str) -> tuple[State, ...]:
    """Return the states that a cell names: `req:*` is all that aren't terminal."""
    names = _NAME.findall(cell)
    return tuple(
        state for name in names for state in (ANY_REQUEST if name == "req:*" else (STATES[name],))
    )  # fmt: skip


def events(cell: str) -> tuple[str, ...]:
    """Return the log events that a cell names, in its order."""
    return tuple(name for name in re.findall(r"`(\w+\.\w+)`", cell) if name in EVENTS)


def test_the_states_are_those_of_the_specification_in_its_order() -> None:
    rows = table("States")
    assert [state for row in rows for state in states(row[0])] == [*Run, *Req]
    terminal = {state for row in rows if "**Terminal" in row[1] for state in states(row[0])}
    assert terminal | {Run.SHUTDOWN} == TERMINAL


@pytest.mark.parametrize(("title", "ways"), [("Transitions", TRANSITIONS), ("Error Handling", FAULTS)])
def test_a_way_is_the_one_of_its_row(title: str, ways: tuple[Transition, ...]) -> None:
    """An error writes its own event, and then that of the transition as well."""
    for (source, _, target, effects), way in zip(table(title), ways, strict=True):
        assert (states(source), states(target)) == (way.sources, (way.target,)), source
        own = events(effects)
        usual = {one.events for one in TRANSITIONS if one.target is way.target and {*way.sources} & {*one.sources}}
        assert way.events[: len(own)] == own, effects
        assert way.events[len(own) :] in ({(), *usual} if own and ways is FAULTS else {()}), effects


def test_every_state_but_the_terminal_ones_leads_somewhere_and_those_lead_nowhere_else() -> None:
    assert {source for source, _ in BY_CONDITION} - TERMINAL == {*Run, *Req} - TERMINAL
    assert {way.target for (source, _), way in BY_CONDITION.items() if source in TERMINAL} == {Run.SHUTDOWN}
