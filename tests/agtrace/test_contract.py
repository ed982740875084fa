"""The answer contract on machines that each strain one limit: every answer keeps it."""

from __future__ import annotations

from typing import Any

import pytest

from agtrace.shaping.shape import Answer
from agtrace.tools import TOOLS
from agtrace.tools.arguments import input_schema
from tests import depth
from tests.agtrace.asking import YEAR, Asker, read
from tests.worlds import VALUES, WORLDS, World, calls, strange_calls

PORTABLE = 10_240

Answered = list[tuple[str, dict[str, Any], Answer]]
"""Calls, each with its answer."""


@pytest.fixture(scope="module", params=WORLDS, ids=lambda world: world.name)
def world(request: pytest.FixtureRequest) -> World:
    return request.param


@pytest.fixture(scope="module")
def asker(world: World, tmp_path_factory: pytest.TempPathFactory) -> Asker:
    folder = tmp_path_factory.mktemp(world.name)
    world.build(folder / "home")
    return Asker(folder / "data", folder / "home", ttl=YEAR, still=True)


@pytest.fixture(scope="module")
def answers(world: World, asker: Asker) -> Answered:
    """The plain call of each tool and some of all calls, in each world others, asked once.

    `asking.py` checks what must hold for all answers, and that the plain ones take no more than the portable size.
    """
    every = [*calls(world)]
    plain = {name: (name, arguments) for name, arguments in reversed(every)}
    some = [*plain.values(), *depth.part(every, WORLDS.index(world), 20)]
    return [(name, arguments, asker.anything(name, **arguments)) for name, arguments in some]


def test_every_answer_keeps_the_contract(answers: Answered, asker: Asker) -> None:
    answered = 0
    for name, arguments, given in answers:
        answered += not given.is_error
        if not given.is_error and name in ("list_sessions", "search_event_previews", "get_session_details"):
            _next_page(asker, name, arguments, given.value)
    assert answered > 7


def test_every_answer_is_a_response_or_an_error_of_the_wire(answers: Answered, world: World) -> None:
    """Nothing checks the types of an answer while it is made."""
    whole = set()
    for name, _, given in answers:
        read(name, given.text)
        whole |= set() if given.is_error or "truncation" in given.value else {name}
    everywhere = {"list_sessions", "get_project_info", "run_sql", "search_event_previews"}
    assert whole >= everywhere if world.name == "empty" else whole >= TOOLS.keys() - {"read_artifact"}


@pytest.mark.parametrize("most", [2_048, pytest.param(10_240, marks=pytest.mark.thorough)])
def test_the_configured_maximum_holds_for_any_arguments(world: World, asker: Asker, most: int) -> None:
    clamped = asker.with_most(most)
    for name, arguments in [*calls(world)][:: depth.depth(61, 5) if most == PORTABLE else depth.depth(47, 11)]:
        clamped.anything(name, **arguments)  # it checks the size


def test_the_same_call_gives_the_same_answer(answers: Answered, asker: Asker) -> None:
    other = Asker(asker.settings.data_dir, ttl=YEAR)
    for name, arguments, given in answers[::5]:
        if name != "read_artifact" or arguments["ref"] != "ax://health":
            assert other.anything(name, **arguments).text == given.text


@pytest.mark.parametrize(
    "world", [world for world in WORLDS if world.name in ("empty", "outputs", "emoji")], indirect=True
)
def test_what_no_argument_expects_is_answered_within_the_contract(world: World, asker: Asker) -> None:
    """Errors, too; what is refused depends little on what there is, so each world has some of the calls."""
    some = depth.part([*strange_calls()], WORLDS.index(world), 7)
    refused = sum(asker.anything(tool, **arguments).is_error for tool, arguments in some)
    assert refused > 50


def test_every_argument_has_values_to_be_asked_with() -> None:
    for name, tool in TOOLS.items():
        for argument, schema in input_schema(tool.arguments)["properties"].items():
            known = argument in VALUES or argument == "cursor" or {"enum", "maximum"} & schema.keys()
            assert known or argument == "provider" or schema.get("type") == "boolean", f"{name}: {argument}"


def _next_page(asker: Asker, name: str, arguments: dict[str, Any], value: dict[str, Any]) -> None:
    following = value.get("pagination", value.get("chunk", {})).get("next_cursor")
    if following is not None:
        asker.ask(name, **{**arguments, "cursor": following})


# -- failures that hide ----------------------------------------------------------------------------


def test_every_hint_can_be_followed(answers: Answered, asker: Asker, world: World) -> None:
    followed: set[str] = set()
    for _, _, given in answers[::2]:
        hint = given.value.get("hint", "")
        if not given.is_error and hint.partition("(")[0] in TOOLS and hint not in followed:
            followed.add(hint)
            asker.run(hint)
    assert len(followed) >= (0 if world.name == "empty" else 7)
