"""What `agtrace doctor` found and didn't understand, for people."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agtrace_indexer.providers.registry import AGENTS
from rich.text import Text

from agtrace.render.terminal import OUT, heading, plain_line
from agtrace.text.numbers import counted, size

_FILES_SHOWN = 12
_TABLES_SHOWN = 6


def doctor(found: dict[str, Any]) -> None:
    """Print which logs were found where, what wasn't understood, and what to do about it."""
    index = found["index"]
    OUT.print(
        Text("index", style="bold"),
        f"{plain_line(index['path'])}  ({size(index['bytes'])}, {index['state']})",
        soft_wrap=True,
    )
    count = f"{counted(index['sessions'], 'session')}, {counted(index['events'], 'event')}"
    OUT.print(f"      {count}, integrity {index['integrity']}")
    largest = (
        f"{one['name']} {one['rows']:,} rows{_in_bytes(one['bytes'])}" for one in index["tables"][:_TABLES_SHOWN]
    )
    OUT.print(f"      tables: {', '.join(largest)}", soft_wrap=True)
    if index["archived_files"]:
        OUT.print(f"      archived, their files are gone: {counted(index['archived_files'], 'log')}")
    if index["forgotten_files"]:
        OUT.print(f"      not read, their sessions were forgotten: {counted(index['forgotten_files'], 'file')}")
    for copy in index["damaged_copies"]:
        kept = f"{copy['path']} ({size(copy['bytes'])})"
        OUT.print(
            f"      a rebuild kept {plain_line(kept)}: delete it once you are sure that nothing is missing",
            soft_wrap=True,
            markup=False,
        )
    heading("where it looked")
    for place in found["homes"]:
        if place["exists"]:
            OUT.print(f"  found   {plain_line(place['path'])}", soft_wrap=True)
    absent = sum(not place["exists"] for place in found["homes"])
    if absent:
        OUT.print(f"  absent  {counted(absent, 'more place')} where agents keep logs: `--json` names them")
    for root in found["roots"]:
        if root not in {place["path"] for place in found["homes"]}:
            OUT.print(f"  given   {plain_line(root)}", soft_wrap=True)
    heading("what was found")
    for agent in found["agents"]:
        versions = agent["versions"]
        span = f", versions {versions[0]} to {versions[-1]}" if len(versions) > 1 else ", ".join(["", *versions])
        OUT.print(f"  {AGENTS[agent['provider']].title}: {_counts(agent)}{plain_line(span)}")
    for agent in found["unread_agents"]:
        OUT.print(f"  {agent['agent']}: not read yet ({plain_line(agent['path'])})", soft_wrap=True, markup=False)
    _doctor_retention(found["retention"])
    _doctor_trouble(found)


def _in_bytes(number: int | None) -> str:
    return "" if number is None else f" ({size(number)})"


def _doctor_retention(agents: list[dict[str, Any]]) -> None:
    """Print how long each agent keeps its logs, and how many sessions only the index has."""
    if not agents:
        return
    heading("how long agents keep their logs")
    for agent in agents:
        for kept in agent["settings"]:
            OUT.print(f"  {plain_line(_kept(agent['agent'], kept))}", soft_wrap=True)
        if agent["deleted_sessions"]:
            count = counted(agent["deleted_sessions"], "session")
            OUT.print(f"  {agent['agent']} has deleted the logs of {count} that the index still has", soft_wrap=True)


def _kept(agent: str, kept: dict[str, Any]) -> str:
    """Say how long an agent keeps its logs, and what decides that."""
    setting = f"{kept['setting']} in {kept['file']}"
    source = f"({setting})" if kept["is_set"] else f"({kept['setting']} isn't set in {kept['file']})"
    if kept["days"] is None:
        return f"{agent} keeps them {source}"
    after = f"deletes them {kept['days']:g} days after their last change"
    return f"{agent} {after if kept['certain'] else f'{after}, or keeps them, depending on its version'} {source}"


def _doctor_trouble(found: dict[str, Any]) -> None:
    _doctor_list(
        "files that couldn't be read",
        [f"{file['path']}: {file['reason']}" for file in found["not_read"] if file["status"] != "unrecognized"],
    )
    unrecognized = sum(file["status"] == "unrecognized" for file in found["not_read"])
    if unrecognized:
        _doctor_list(
            f"files that aren't logs agtrace knows: {unrecognized}; formats", [*map(_look, found["unrecognized"])]
        )
    strangers = [folder for folder in found["not_indexed"] if folder["agent"] is None]
    elsewhere = [folder for folder in found["not_indexed"] if folder["agent"] is not None]
    _doctor_list(
        "folders that look like those of agents agtrace doesn't know",
        [f"{folder['folder']}: {_look(folder)}" for folder in strangers],
    )
    _doctor_list(
        "folders with logs that aren't indexed",
        [f"{folder['folder']}: logs of {folder['agent']}, such as {folder['path']}" for folder in elsewhere],
    )
    _doctor_list("logs read in part", [f"{file['path']}: {file['reason']}" for file in found["partly_read"]])
    _doctor_list(
        "lines that aren't records",
        [f"{line['path']}:{line['line']}: {line['reason']} ({line['event']})" for line in found["unreadable_lines"]],
    )
    _doctor_list(
        "record types agtrace doesn't know (kept and searchable)",
        [
            f"{kind['type']} x{kind['count']}, first at {kind['path']}:{kind['line']}"
            for kind in found["unknown_record_types"]
        ],
    )
    advice = Counter(file["advice"] for file in found["not_read"])
    heading("what to do")
    advised = [sentence for agent in found["retention"] for sentence in agent["advice"]]
    for sentence in [*found["trouble"], *advised] or ["nothing: all logs have been read"]:
        OUT.print(f"  {plain_line(sentence)}", soft_wrap=True)
    if strangers:
        told = f"  {counted(len(strangers), 'folder')}: not read; CONTRIBUTING.md shows how to add an agent"
        OUT.print(Text(told, style="dim"))
    if elsewhere:
        told = f"  {counted(len(elsewhere), 'folder')}: `agtrace index FOLDER`, if it isn't a copy of what is indexed"
        OUT.print(Text(told, style="dim"))
    for sentence, count in advice.items():
        OUT.print(Text(f"  {counted(count, 'file')}: {sentence}", style="dim"))


def _look(look: dict[str, Any]) -> str:
    """Return what files of one format look like, on one line."""
    said = [look["form"]]
    if look["fields"]:
        said.append(f"fields {', '.join(look['fields'])}")
    if look["types"]:
        said.append(", ".join(look["types"]))
    return f"{counted(look['files'], 'file')}: {'; '.join(said)}; such as {look['path']}"


def _counts(agent: dict[str, Any]) -> str:
    warmups = f" ({agent['warmups']:,} more are mere starts, which lists leave out)" if agent["warmups"] else ""
    return f"{counted(agent['sessions'], 'session')} in {counted(agent['files'], 'file')}{warmups}"


def _doctor_list(what: str, lines: list[str]) -> None:
    if not lines:
        return
    heading(f"{what}: {len(lines)}")
    for line in lines[:_FILES_SHOWN]:
        OUT.print(f"  {plain_line(line)}", soft_wrap=True, markup=False)
    if len(lines) > _FILES_SHOWN:
        OUT.print(Text(f"  ... and {len(lines) - _FILES_SHOWN} more (agtrace doctor --json)", style="dim"))
