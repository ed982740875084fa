"""Kinds of tool calls (commands, polls, probes, calls that only read), and their grouping into attempts.

The terms are those of docs/health.md. An unknown call is taken for one that changes something.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache

from agtrace_indexer.events.commands import command_in
from agtrace_indexer.events.shell import Part, parts
from agtrace_indexer.providers.registry import AGENTS, TOOLS
from agtrace_schema.events import Outcome, Provider, UserKind
from agtrace_schema.patterns import later

from agtrace.health.history import Call, Entry, History, Notice, UserText
from agtrace.sessions.quotes import human_words, start_of
from agtrace.sessions.turns import telling_argument
from agtrace.text.lines import name_in_sentence as in_words
from agtrace.text.lines import one_line
from agtrace.text.shell_programs import asks_for_state, reads, tests, waits

# -- tool names ------------------------------------------------------------------------------------
# The kinds of tools by their names: those that run commands, wait, read, ask the human or start an agent. The agents'
# own tools are known by name; those of MCP servers are judged by the words in their names.

_NAMESPACE = later(r"__|[.:/]")
_CAMEL = later(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=1_024)
def own_name(tool: str) -> str:
    """Return the name of a tool in lower case, without its server or namespace."""
    return _NAMESPACE.split(tool)[-1].lower()


SHELLS = frozenset(map(own_name, TOOLS.shells)) | {"execute_command", "run_command", "run_terminal_cmd", "unified_exec"}
"""The tools with which agents run commands, in lower case, without a namespace such as `functions.`."""

_WAITING = frozenset(map(own_name, TOOLS.waiting)) | {"command_status"}
_WAITING_WORDS = frozenset({"wait", "await", "sleep", "poll", "watch"})

_READING = frozenset(map(own_name, TOOLS.reading))
_READING_WORDS = frozenset(
    """
    describe fetch find get glob grep inspect list lookup read screenshot search show snapshot view
    """.split()  # noqa: SIM905
)
_WRITING_WORDS = frozenset(
    """
    add answer apply approve assign cancel click close commit create delete deploy drop edit exec execute fill format
    generate insert install invoke kill make merge modify move navigate new open patch post press publish push put
    refresh remove rename replace reset restart run save send set start stop submit toggle trigger type undo update
    upload upsert write
    """.split()  # noqa: SIM905
)
ASKING = frozenset(own_name(tool).replace("_", "") for tool in TOOLS.asking) | {
    *("askhuman", "askfollowupquestion", "requestpermissions")
}
"""The tools that ask the human, in lower case, without underscores."""


@lru_cache(maxsize=1_024)
def tool_waits(tool: str) -> bool:
    """Whether it waits on purpose, or asks for a state."""
    words = _words_of(tool)
    return own_name(tool) in _WAITING or not _WAITING_WORDS.isdisjoint(words) or words[-1:] == ["status"]


@lru_cache(maxsize=1_024)
def tool_only_reads(tool: str) -> bool:
    """Whether it can't change anything."""
    words = _words_of(tool)
    if not _WRITING_WORDS.isdisjoint(words):
        return False
    return own_name(tool) in _READING or not _READING_WORDS.isdisjoint(words)


def _words_of(tool: str) -> list[str]:
    """Return the words of a tool's own name, the same for `get_issue`, `getIssue` and `GetIssue`."""
    return _CAMEL.sub(" ", _NAMESPACE.split(tool)[-1]).lower().replace("_", " ").replace("-", " ").split()


# -- calls and attempts ------------------------------------------------------------------------------

_COMMANDS = (*TOOLS.commands, "source")
"""The arguments of shells that hold the command."""

_ABOUT = frozenset({"description", "justification"})
"""Arguments of a shell that only say what the command is for."""

_CLAUDE_EXIT_CODE = later(r"(?:Error: )?Exit code (-?\d{1,9})\b")
_COMPLAINT = later(r"^(?:[\w./-]*/)?([\w.+-]+)(?:\[\d+\])?(?::\d+)*: (?!(?:line \d+: )?(?:type|hash): )", re.MULTILINE)
_SHELL_NAMES = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fatal", "usage"})

_POLLING = later(r"\btools\.(?:write_stdin|wait)\b|\bwrite_stdin\(")
_RUNNING = later(r"\bexec_command\b|\bapply_patch\b|\bshell(?:_command)?\b")
_GOES_ON = later(r"^(?:Process running with session|Script running with cell) ID ", re.M)
_LOOKED_AT = 500
_STOPPING = frozenset({"taskstop", "killshell", "killbash", "kill_shell", "stop_bash", "close_agent"})


def attempts(history: History) -> list[list[Call]]:
    """Return the calls of a session in file order, those together that one response made: it saw no result between."""
    together: list[list[Call]] = []
    for call in history.calls:
        last = together[-1][0] if together else None
        if last is not None and call.step is not None and (call.turn, call.step) == (last.turn, last.step):
            together[-1].append(call)
        else:
            together.append([call])
    return together


def is_passed_over(call: Call) -> bool:
    """Whether streaks, loops and endings ignore it: refused, interrupted, without result, a probe, or reported later.

    A Codex command that still runs when its call returns fails in the call that waits for it, so that it counts once.
    """
    if call.result_event is None or call.outcome in (Outcome.REJECTED, Outcome.INTERRUPTED):
        return True
    if call.failed and own_name(call.tool) in _STOPPING:
        return True  # what it was to stop had ended
    return is_probe(call) or (call.failed and _GOES_ON.search(call.result, 0, _LOOKED_AT) is not None)


def command_of(call: Call) -> str | None:
    """Return a shell's command, on one line with single spaces; None for other tools."""
    command = _command(call)
    return None if command is None else " ".join(command.split())


def is_shell(call: Call) -> bool:
    """Whether its tool runs commands, even if the command isn't known."""
    return own_name(call.tool) in SHELLS


def deed(call: Call) -> Hashable:
    """Return what a call did, equal for equal tools and arguments; a command's description doesn't matter."""
    arguments = call.arguments
    if not isinstance(arguments, dict) or _ABOUT.isdisjoint(arguments) or not is_shell(call):
        return call.action
    telling = {name: value for name, value in arguments.items() if name not in _ABOUT}
    return call.tool, repr(sorted(telling.items()))


def is_poll(call: Call) -> bool:
    """Whether it waits on purpose for something else to change, or asks for its state."""
    if tool_waits(call.tool) or _polls_in_script(call):
        return True
    found = _parts(call)
    if any(map(waits, found)):
        return True
    return any(map(asks_for_state, found)) and all(asks_for_state(part) or reads(part) for part in found)


def _polls_in_script(call: Call) -> bool:
    """Whether a script of code mode does nothing but ask for the state of a process."""
    script = call.arguments if isinstance(call.arguments, str) else None
    return script is not None and _POLLING.search(script) is not None and _RUNNING.search(script) is None


def only_reads(call: Call) -> bool:
    """Whether it can't change anything."""
    if _command(call) is None:
        return tool_only_reads(call.tool)
    found = _parts(call)
    return bool(found) and all(map(reads, found))


def is_probe(call: Call) -> bool:
    """Whether it failed with exit code 1 only because its command's answer was no."""
    if not call.failed or _exit_code(call) != 1:
        return False
    command = _command(call)
    deciding = _deciding(command) if command is not None else []
    if not any(map(tests, deciding)) or not all(tests(part) or reads(part) for part in deciding):
        return False
    complaining = {match[1].lower() for match in _COMPLAINT.finditer(call.result)}  # the programs, or the shell
    return complaining.isdisjoint({part.program for part in _parts(call)} - {"which"} | _SHELL_NAMES)


def asks_human(call: Call) -> bool:
    """Whether it asks the human, so that its time is theirs."""
    return own_name(call.tool).replace("_", "") in ASKING


# -- commands --------------------------------------------------------------------------------------


def _command(call: Call) -> str | None:
    """Return the command as given; determined once, as it is needed again and again."""
    if call.script is None:
        call.script = _given(call) or ""
    return call.script or None


def _given(call: Call) -> str | None:
    name = own_name(call.tool)
    if name not in SHELLS:
        return None
    found = command_in(call.arguments, _COMMANDS, may_be_script=name == "exec")
    return None if found is None else found.text


def _parts(call: Call) -> tuple[Part, ...]:
    command = _command(call)
    return () if command is None else parts(command)


def _deciding(command: str) -> list[Part]:
    """Return the programs that may have decided the exit code: the last one, and those joined to it with `&&`."""
    deciding: list[Part] = []
    found = [part for part in parts(command) if not part.substituted]
    piped = False
    for part in reversed(found):
        if not piped or "pipefail" in command:
            deciding.append(part)
        piped = part.after in ("|", "|&")
        if not piped and part.after != "&&":
            break
    return deciding


def _exit_code(call: Call) -> int | None:
    if call.exit_code is not None:
        return call.exit_code
    match = _CLAUDE_EXIT_CODE.match(call.result)
    return int(match[1]) if match else None


# -- labels ----------------------------------------------------------------------------------------
# Names and quotes in the sentences of findings: secrets are masked first, then texts are shortened.

_LONGEST = 80
_LONGEST_TOOL = 40
_NO_QUOTE = "\u02cb"


def call_label(call: Call) -> str:
    """Return the tool with its most telling argument: "Bash `npm test`"."""
    what = command_of(call) or telling_argument(call.arguments)
    tool = tool_named(call.tool)
    return f"{tool} {quoted(what)}" if what else tool


def tool_named(tool: str) -> str:
    """Return a tool's name, in quotes if it isn't a single word."""
    return in_words(tool, _LONGEST_TOOL)


def quoted(text: str, most: int = _LONGEST) -> str:
    """Quote the beginning of a text from the log on one line; nothing in it can end the quote."""
    return f"`{one_line(start_of(text), most).replace('`', _NO_QUOTE)}`"


# -- refusals --------------------------------------------------------------------------------------

_BY_THE_HUMAN = later(
    r"\b(?:the )?(?:user|human) (?:doesn't want|does not want|did not allow|didn't allow|rejected|declined|denied"
    r"|refused|cancell?ed|aborted)"
    r"|\b(?:rejected|declined|denied|refused|cancell?ed|aborted) by (?:the )?(?:user|human)\b(?! approval)",
    re.IGNORECASE,
)
"""How agents write that the human refused a call, and not a rule or a sandbox."""
_REFUSAL_CHARS = 400


def refused_by_human(call: Call) -> bool:
    """Whether the human refused a call, with words or without."""
    if call.outcome is not Outcome.REJECTED:
        return False
    return _BY_THE_HUMAN.search(call.result[:_REFUSAL_CHARS]) is not None or human_words(call.result) is not None


# -- api -------------------------------------------------------------------------------------------

_SHOWN = 120
_OF_THE_AGENT = later(r"\[use[A-Z]\w*\] |This operation was aborted")
"""Errors of the agent itself, and what the human stopped."""
_IN_JSON = later(r'"message": ?"((?:[^"\\]|\\.)+)"')
_STATUS = later(r'"status": ?(\d{3})\b')


def is_api_error(entry: Entry, provider: Provider) -> bool:
    """Whether it says that the model's API failed, retried or not."""
    if not isinstance(entry, Notice):
        return False
    notices = AGENTS[provider].notices
    told = entry.kind in notices.api_errors or entry.kind in notices.retried_errors
    return told and _OF_THE_AGENT.match(entry.text) is None


def error_text(notice: Notice) -> str:
    """Return the text of an error of the API, on one line, shortened; empty if it has none."""
    if not notice.text.lstrip().startswith("{"):
        return quoted(notice.text, _SHOWN) if notice.text.strip() else ""
    said = max(_IN_JSON.findall(notice.text), key=len, default="")
    status = _STATUS.search(notice.text)
    return quoted(said, _SHOWN) if said else f"status {status[1]}" if status else ""


def is_interruption(entry: Entry, provider: Provider) -> bool:
    """Whether the human stopped the model there."""
    if isinstance(entry, UserText):
        return entry.kind is UserKind.INTERRUPTION
    if not isinstance(entry, Notice):
        return False
    return any(sign.fits(entry.kind, entry.text) for sign in AGENTS[provider].notices.interruptions)


def is_compaction(entry: Entry, provider: Provider) -> bool:
    """Whether a notice says that the context was compacted."""
    if not isinstance(entry, Notice):
        return False
    return any(sign.fits(entry.kind, entry.text) for sign in AGENTS[provider].notices.compactions)
