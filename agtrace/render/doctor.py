"""What is here and in which state, for people: logs, index, a rebuild, clients and settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agtrace_indexer.providers.registry import AGENTS
from rich.table import Table
from rich.text import Text

from agtrace.render.terminal import OUT, heading, left_out, plain_line
from agtrace.text.numbers import counted, counted_sessions, size

if TYPE_CHECKING:
    from agtrace_indexer.run.rebuild import Rebuilt

    from agtrace.upkeep.agents import Program


_LOST_SHOWN = 20


def repaired(done: Rebuilt) -> None:
    """Print what was damaged, what the index holds now, what is lost, and where the old file is."""
    if done.damage:
        heading("what was damaged")
        _print_all(done.damage)
    else:
        OUT.print("the index is sound: no damage was found")
    heading("the index now")
    OUT.print(f"  {counted(done.sessions, 'session')}, {counted(done.events, 'event')}; checked as a whole and sound")
    if done.archived:
        OUT.print(f"  read from the archive, their files are gone: {counted(done.archived, 'log')}")
    if done.lost:
        heading(f"sessions that neither the logs nor the archive have: {len(done.lost)}")
        _print_all(f"{one.session} ({one.title})" if one.title else one.session for one in done.lost[:_LOST_SHOWN])
        left_out("session", min(len(done.lost), _LOST_SHOWN), len(done.lost))
    if "session" in done.unread:
        _print_all(["which sessions it had couldn't be read: some may be neither in the logs nor in the archive"])
    if "root" in done.unread:
        _print_all(["the list of indexed folders is damaged: `agtrace roots` shows what is left of it"])
    _print_all([f"the old file is {done.old}: delete it once you are sure that nothing is missing"], indent="")


def _print_all(sentences: Iterable[str], indent: str = "  ") -> None:
    for sentence in sentences:
        OUT.print(f"{indent}{plain_line(sentence)}", soft_wrap=True, markup=False)


_WIDE = 100
_ONLY_LOGS = "logs"
_ADDED = {True: "yes", False: "no", None: "unknown"}


def print_programs(programs: Sequence[Program]) -> None:
    """Print every program: whether it is here, whether it has our server, and on a wide terminal, in which file."""
    wide = OUT.width >= _WIDE
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("client", *(("program",) if wide else ()), "found", "agtrace", *(("settings",) if wide else ())):
        table.add_column(column, overflow="fold" if column == "settings" else "ellipsis", no_wrap=column != "settings")
    for program in programs:
        state = _ADDED[program.added]
        style = "green" if program.added else "yellow" if program.added is None else "dim"
        here = Text(_here(program), style="" if program.found else "dim")
        cells: list[str | Text] = [program.name, here, Text(state, style=style)]
        table.add_row(*([program.name, program.title, *cells[1:], plain_line(str(program.file))] if wide else cells))
    OUT.print(table)
    OUT.print()
    if any(_here(program) == _ONLY_LOGS for program in programs):
        OUT.print(f"{_ONLY_LOGS}: logs found, program not on PATH", style="dim")
    for program in programs:
        if program.trouble:
            OUT.print(Text(f"{program.name}: {plain_line(program.trouble)}", style="yellow"), soft_wrap=True)
    OUT.print("To see what would be added: agtrace setup CLIENT; to add it: agtrace setup CLIENT --apply", style="dim")


def _here(program: Program) -> str:
    return "yes" if program.found else _ONLY_LOGS if program.logs else "no"


_ALIGNED = 20


def settings(rows: Sequence[Mapping[str, str]], file: Path | None) -> None:
    """Print each setting with its value and source, uncut; what isn't a default stands out."""
    longest = max(len(row["key"]) for row in rows)
    for row in rows:
        value, source = plain_line(row["value"]), plain_line(row["source"])
        line = Text(f"{row['key']:{longest}}  {value:{_ALIGNED}}  ")
        OUT.print(line.append(source, "dim" if source == "default" else "bold"), soft_wrap=True)
    where = f"The file is {file}." if file else "There is no configuration file: `agtrace config path` says where."
    OUT.print(Text(where, style="dim"), soft_wrap=True)


_FILES_SHOWN = 12


def doctor(found: dict[str, Any]) -> None:
    """Print which logs were found where, what wasn't understood, and what to do about it."""
    index = found["index"]
    OUT.print(
        Text("index", style="bold"),
        f"{plain_line(index['path'])}  ({size(index['bytes'])}, {index['state']})",
        soft_wrap=True,
    )
    count = f"{counted_sessions(index['sessions'], index['sub_agents'])}, {counted(index['events'], 'event')}"
    OUT.print(f"      {count}, integrity {index['integrity']}")
    if index["archived_files"]:
        OUT.print(f"      archived, their files are gone: {counted(index['archived_files'], 'log')}")
    if (archive := index["archive"])["logs"]:
        kept = f"{counted(archive['logs'], 'log')}, {archive['deleted']:,} of them deleted by their agents"
        OUT.print(f"      archive: {kept}, {size(archive['bytes'])}")
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
        title, newer = AGENTS[agent["provider"]].title, agent["newer_versions"]
        OUT.print(f"  {title}: {_counts(agent)}{plain_line(span)}")
        if newer:
            OUT.print(
                f"    {title} {plain_line(newer[-1])} is newer than what was tested ({agent['tested']['version']})"
            )
    for agent in found["unread_agents"]:
        OUT.print(f"  {agent['agent']}: not read yet ({plain_line(agent['path'])})", soft_wrap=True, markup=False)
    _doctor_retention(found["retention"])
    _doctor_trouble(found)


def _doctor_retention(agents: list[dict[str, Any]]) -> None:
    """Print how long each agent keeps its logs, and how many sessions only the index has."""
    if not agents:
        return
    heading("how long agents keep their logs")
    for agent in agents:
        for kept in agent["settings"]:
            OUT.print(f"  {plain_line(_retention_text(agent['agent'], kept))}", soft_wrap=True)
        if agent["deleted_sessions"]:
            count = counted(agent["deleted_sessions"], "session")
            OUT.print(f"  {agent['agent']} has deleted the logs of {count} that the index still has", soft_wrap=True)


def _retention_text(agent: str, kept: dict[str, Any]) -> str:
    """Say how long an agent keeps its logs, and what decides that."""
    setting = f"{kept['setting']} in {kept['file']}"
    source = f"({setting})" if kept["is_set"] else f"({kept['setting']} isn't set in {kept['file']})"
    if kept["days"] is None:
        return f"{agent} keeps them {source}"
    after = f"deletes them {kept['days']:g} days after their last change"
    return f"{agent} {after if kept['certain'] else f'{after}, or keeps them, depending on its version'} {source}"


_NO_TROUBLE = frozenset({"unrecognized", "duplicate"})


def _doctor_trouble(found: dict[str, Any]) -> None:
    _doctor_list(
        "files that couldn't be read",
        [f"{file['path']}: {file['reason']}" for file in found["not_read"] if file["status"] not in _NO_TROUBLE],
    )
    unrecognized = sum(file["status"] == "unrecognized" for file in found["not_read"])
    if unrecognized:
        _doctor_list(
            f"files that aren't logs agtrace knows: {unrecognized}; formats", [*map(_look, found["unrecognized"])]
        )
    unknown_agents = [folder for folder in found["not_indexed"] if folder["agent"] is None]
    elsewhere = [folder for folder in found["not_indexed"] if folder["agent"] is not None]
    _doctor_list(
        "folders that look like those of agents agtrace doesn't know",
        [f"{folder['folder']}: {_look(folder)}" for folder in unknown_agents],
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
        "what agtrace doesn't know: records (kept and searchable), fields of usage (in no total)",
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
    if unknown_agents:
        told = f"  {counted(len(unknown_agents), 'folder')}: not read; CONTRIBUTING.md shows how to add an agent"
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
