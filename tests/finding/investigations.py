"""Investigations by a model: what it is told, how it asks, what its answers were worth.

`python -m tests.finding.investigations FOLDER COMMAND` with a FOLDER to work in:

- `prepare`: an index of the real logs (../shared/logs);
- `tools`: the list of tools, as a client shows it to a model;
- `question ID tools|shell`: what a model in a fresh context is told;
- `ask ID TOOL JSON`: one call of a tool, through `agtrace mcp` and the official client, printed and noted;
- `shell ID COMMAND`: one command among the logs instead, as an agent without agtrace would run it;
- `answer ID tools|shell TEXT`: what the model answered in the end;
- `score`: right, calls and bytes of all that was noted.

The variable `RUN` is how the model is told to run it, if a script stands for the command line.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import TextContent

from tests.conftest import LOGS
from tests.finding.ranking import AGENTS
from tests.finding.transcripts import QUESTIONS, investigations, table

LONGEST_OUTPUT = 30_000
"""The most characters of a command's output that an agent is shown."""

_BRIEF = """You investigate past sessions of coding agents (Claude Code, Codex CLI, Gemini CLI) on a machine: what was \
asked, done, tried and found out. Answer this one question:

    {question}

{means}
Every call costs time and every byte of its output costs context: make as few calls as you can, one at a time. Use \
nothing else: no other files, no other commands, no knowledge from elsewhere. If what you are asked for isn't there, \
or the question assumes something that isn't so, the right answer says that. Name sessions by the first 8 characters \
of their id. When you know, give the answer in one to three sentences."""

_MEANS = {
    "tools": "Your only means are the tools of the MCP server agtrace. They are listed below with their schemas; "
    "call them with\n    {run} ask {id} TOOL 'JSON ARGUMENTS'\nWhen you know, end with\n"
    "    {run} answer {id} tools 'TEXT'",
    "shell": "Their logs are below claude/, codex/ and gemini/ of the working directory, as files of JSON lines (or "
    "JSON). Your only means are shell commands and scripts ({programs} are there), each run with\n"
    "    {run} shell {id} 'COMMAND'\nWhen you know, end with\n    {run} answer {id} shell 'TEXT'",
}


def prepare(folder: Path) -> None:
    """Index the real logs."""
    command = [sys.executable, "-m", "agtrace", "index", *(str(LOGS / agent) for agent in AGENTS)]
    subprocess.run(command, env=_environment(folder), check=True)  # our own command


def tools(folder: Path) -> None:
    """Print the list of tools."""
    _print(json.dumps(asyncio.run(_listed(folder)), ensure_ascii=False, separators=(",", ":")))


def question(folder: Path, id: str, means: str) -> None:
    """Print what a model is told."""
    run = os.environ.get("RUN") or f"{sys.executable} -m tests.finding.investigations {folder}"
    programs = ", ".join(name for name in ("rg", "grep", "jq", "python3", "sqlite3") if shutil.which(name))
    means_told = _MEANS[means].format(run=run, id=id, programs=programs)
    _print(_BRIEF.format(question=_question(id)["question"], means=means_told))
    if means == "tools":
        _print("\nThe tools:")
        tools(folder)


def ask(folder: Path, id: str, tool: str, arguments: str) -> None:
    """Call a tool and print its answer."""
    text = asyncio.run(_called(folder, tool, json.loads(arguments)))
    _note(folder, "tools", {"question": id, "call": f"{tool} {arguments}", "bytes": len(text.encode())})
    _print(text)


def shell(folder: Path, id: str, command: str) -> None:
    """Run a command among the logs and print its output, cut as agents cut it."""
    done = subprocess.run(  # what an agent would run
        command, shell=True, cwd=LOGS, capture_output=True, timeout=120, check=False
    )
    text = (done.stdout + done.stderr).decode("utf-8", "replace")[:LONGEST_OUTPUT]
    _note(folder, "shell", {"question": id, "call": command, "bytes": len(text.encode())})
    _print(text)


def answer(folder: Path, id: str, means: str, text: str) -> None:
    """Note an answer."""
    _note(folder, means, {"question": id, "answer": text})


def score(folder: Path) -> None:
    """Print the scores of both means."""
    for means in _MEANS:
        transcript = _transcript(folder, means)
        if transcript.exists():
            _print(f"with {means}\n{table(investigations(transcript.read_text().splitlines()))}\n")


async def _called(folder: Path, tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the texts of an answer, as the client hands them to the model."""
    async with Client(_server(folder)) as client:
        result = await client.call_tool(tool, dict(arguments))
        return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


async def _listed(folder: Path) -> list[dict[str, Any]]:
    """Return the name, the description and the arguments of each tool: what a client passes on to the model."""
    async with Client(_server(folder)) as client:
        listed = (await client.list_tools()).tools
    return [{"name": tool.name, "description": tool.description, "arguments": tool.input_schema} for tool in listed]


def _server(folder: Path) -> Any:
    server = StdioServerParameters(command=sys.executable, args=["-m", "agtrace", "mcp"], env=_environment(folder))
    return stdio_client(server, Path(os.devnull).open("w"))


def _environment(folder: Path) -> dict[str, str]:
    return {"HOME": str(folder), "PATH": os.environ["PATH"], "AGTRACE_DATA_DIR": str(folder / "data")}


def _question(id: str) -> Mapping[str, Any]:
    return next(one for one in QUESTIONS if one["id"] == id)


def _transcript(folder: Path, means: str) -> Path:
    return folder / f"{means}.jsonl"


def _note(folder: Path, means: str, record: Mapping[str, Any]) -> None:
    with _transcript(folder, means).open("a") as transcript:
        transcript.write(json.dumps(record, ensure_ascii=False) + "\n")


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


COMMANDS: dict[str, Callable[..., None]] = {
    one.__name__: one for one in (prepare, tools, question, ask, shell, answer, score)
}


def main(arguments: list[str]) -> None:
    """Run a command."""
    if len(arguments) < 2 or arguments[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[arguments[1]](Path(arguments[0]).resolve(), *arguments[2:])


if __name__ == "__main__":
    main(sys.argv[1:])
