"""`agtrace setup` for programs whose settings it edits itself: shows the change, or makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from agtrace.commands.printing import print_lines
from agtrace.upkeep.clients import CLIENTS, change
from agtrace.upkeep.programs import found

if TYPE_CHECKING:
    from agtrace.upkeep.clients import Client, Machine
    from agtrace.upkeep.clients.change import Change


class Server(NamedTuple):
    """Our server as a client is to start it: the executable and its environment, on this machine."""

    machine: Machine
    executable: str
    variables: Mapping[str, str]


def show(name: str, server: Server, *, remove: bool) -> None:
    """Print what would change in a client's settings."""
    client = CLIENTS[name]
    planned = _planned(client, server, remove=remove)
    option = " --remove" if remove else ""
    if planned.nothing:
        _print(_nothing_to_do(client, planned, remove=remove))
        return
    what = f"take agtrace out of {client.title}" if remove else f"add agtrace to {client.title}"
    _print(f"To {what}, change {planned.path} like this:", "", *planned.lines(), "")
    _print(f"`agtrace setup {name}{option} --apply` makes this change, and no other.", *_doubts(client, server))


def apply(name: str, server: Server, *, remove: bool) -> None:
    """Change a client's settings, if they aren't as they are to be already."""
    from agtrace.serving.interruption import together

    client = CLIENTS[name]
    planned = _planned(client, server, remove=remove)
    if planned.nothing:
        _print(_nothing_to_do(client, planned, remove=remove))
        return
    with together:
        planned.make()
    done = f"agtrace was taken out of {client.title}" if remove else f"agtrace was added to {client.title}"
    _print(f"{done}: {planned.path}", f"Restart {client.title} if it is running.", *_doubts(client, server))


def _planned(client: Client, server: Server, *, remove: bool) -> Change:
    if remove:
        return change.removing(client, server.machine)
    return change.adding(client, server.machine, server.executable, server.variables)


def _nothing_to_do(client: Client, planned: Change, *, remove: bool) -> str:
    if remove:
        return f"agtrace isn't in the settings of {client.title}, {planned.path}: nothing to do"
    return f"agtrace is in the settings of {client.title} already, {planned.path}: nothing to do"


def _doubts(client: Client, server: Server) -> Iterator[str]:
    if not found(client, server.machine):
        yield f"({client.title} wasn't found on this machine.)"


def _print(*lines: str) -> None:
    """Print lines, which may quote a user's settings: secrets in them are masked."""
    from agtrace_indexer.redact import redact

    from agtrace.commands.errors import use_rules_at_hand
    from agtrace.render.terminal import plain

    use_rules_at_hand()
    print_lines(plain(redact("\n".join(lines))).split("\n"))
