"""Asking the index as the MCP server does: settings, rules, and the answers of tools."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from agtrace.commands.errors import NoIndex, explanation_of, fail, tell

if TYPE_CHECKING:
    from agtrace.answers.desk import Answers
    from agtrace.settings import Settings
    from agtrace.shaping.shape import Answer


def usable() -> Settings:
    """The settings from the environment, with the user's rules for secrets in use.

    Raises `SettingError` for a value and `UnusableRules` for rules that can't be used.
    """
    from agtrace_indexer.redact import use

    from agtrace.settings import load

    found = load()
    use(found.data_dir)
    return found


def with_index() -> Settings:
    """The same where there is an index. Raises `NoIndex` where there is none."""
    found = usable()
    if not found.database.exists():
        raise NoIndex
    return found


@cache
def answers() -> Answers:
    """What answers, made once: a text that goes on over chunks is asked for many times.

    Raises `SettingError` for prices that can't be used, which a server does without.
    """
    from agtrace.answers.desk import Answers
    from agtrace.answers.log import silent
    from agtrace.usage.prices import load as load_prices

    found = usable()
    load_prices(found.prices)
    return Answers(found, refresh_seconds=10, log=silent)


def ask(tool: str, arguments: dict[str, Any]) -> Answer:
    """The answer of a tool, as the MCP server would give it; an error ends the process with its message."""
    answer = answers().ask(tool, {name: value for name, value in arguments.items() if value is not None})
    if answer.is_error:
        error = answer.value["error"]
        found = explanation_of(error["code"], error["message"], answer.value.get("hint"), error["details"])
        fail(found.message, found.code, *found.more)
    if "index" in answer.value:
        state = answer.value["index"]
        tell(behind(state["state"], state.get("files_behind"), state.get("problem")))
    return answer


def behind(state: str, files_behind: int | None, problem: str | None) -> str:
    """What an index that isn't ready lacks, as a sentence."""
    if problem is not None:
        return f"{problem}; the answer is from what was indexed before"
    files = f", {files_behind} files to go" if files_behind is not None else ""
    return f"the index is {state.replace('_', ' ')}{files}: the answer is from what it holds so far"


def pages(tool: str, wanted: dict[str, Any], answer: Answer | None = None) -> Iterator[Answer]:
    """An answer, and those that follow by its cursors."""
    answer = answer or ask(tool, wanted)
    while True:
        yield answer
        following = (answer.value.get("pagination") or answer.value.get("chunk") or {}).get("next_cursor")
        if not following:
            return
        answer = ask(tool, {**wanted, "cursor": following})
