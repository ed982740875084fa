"""`agtrace config`: the settings, where each comes from, and what a file would change."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from agtrace.commands.errors import USAGE, tell
from agtrace.commands.options import plain_json, settings_options
from agtrace.commands.printing import leave_lines, print_json, print_lines


class _WithSettings(click.Group):
    """A group whose help lists the settings."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List each setting with what it may be, its default and its meaning."""
        from agtrace.settings.schema import allowed, keys

        rows = []
        for key in keys().values():
            default = "" if key.default is None else f", by default {_as_text(key.default)}"
            rows.append((key.name, f"{allowed(key.schema)}{default}: {key.meaning}"))
        with formatter.section("Settings"):
            formatter.write_dl(rows)


@click.group(cls=_WithSettings, invoke_without_command=True)
@settings_options
@plain_json
@click.pass_context
def config(context: click.Context, as_json: bool) -> None:
    """Show each setting, its value, and where it comes from.

    Settings come from a file, from variables named AGTRACE_ and the key (AGTRACE_MAX_PAGE_SIZE, with two underscores
    for each dot), and from --set; later ones win. The file is config.toml in the platform's folder for configuration,
    or what --config or AGTRACE_CONFIG name; it may be TOML, YAML or JSON. A running server notices when it changes.

    \b
      agtrace config | grep AGTRACE_
      agtrace config check team.yaml
      agtrace --set token_budget_threshold=8000 config
    """
    if context.invoked_subcommand is not None:
        return
    from agtrace.settings.model import flat, veiled
    from agtrace.settings.sources import InvalidSettings, fault_sentences, read

    found = read()
    if found.faults:
        raise InvalidSettings(found.faults)
    for sentence in fault_sentences(found.unknown):
        tell(sentence)
    rows = [
        {"key": key, "value": veiled(key, value), "source": found.origin(key)}
        for key, value in flat(found.settings).items()
    ]
    file = found.file and str(found.file)
    if as_json:
        print_json({"file": file, "version": found.settings.version, "settings": rows})
    else:
        from agtrace.render.doctor import settings

        settings([{**row, "value": _as_text(row["value"])} for row in rows], found.file)


@config.command(short_help="Check a file: its faults, or what it would change.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@plain_json
def check(file: Path | None, as_json: bool) -> None:
    """Say what is wrong with a configuration file, or what it would change. Nothing is changed.

    Without FILE, it checks the one that is in force. Exits 2 if it can't be used, naming every fault: the key, its
    value, and what is allowed. A key that isn't known sets nothing, and is named.
    """
    from agtrace.settings.environment import config_file
    from agtrace.settings.live import Live
    from agtrace.settings.model import changes
    from agtrace.settings.sources import fault_sentences, read

    in_force, named = config_file()
    if file is None and not named and not in_force.exists():
        sentence = f"There is no configuration file, which would be {in_force}."
        leave_lines({"valid": True, "changes": []}, as_json, [sentence])
        return
    chosen = (file or in_force).absolute()
    found = read(file=chosen)
    if found.faults:
        faults = [fault._asdict() for fault in found.faults]
        if as_json:
            print_json({"valid": False, "faults": faults})
        else:
            tell(*fault_sentences(found.faults))
        sys.exit(USAGE)
    differences = list(changes(Live.start().current.settings, found.settings))
    unknown = [one._asdict() for one in found.unknown]
    if as_json:
        print_json({"valid": True, "changes": [one._asdict() for one in differences], "unknown": unknown})
    else:
        compared = "It is what is in force." if chosen == in_force else "Compared with what is in force now, it changes"
        nothing = "" if chosen == in_force else " nothing." if not differences else ":"
        print_lines([f"{file or in_force} can be used. {compared}{nothing}"])
        print_lines(f"  {one.key}: {_as_text(one.old)} -> {_as_text(one.new)}" for one in differences)
        for sentence in fault_sentences(found.unknown):
            tell(sentence)


@config.command(short_help="Print the JSON Schema of a file, for editors.")
def schema() -> None:
    """Print the JSON Schema of a configuration file, for editors that complete and check it."""
    from agtrace.settings.schema import schema

    print_json(dict(schema()))


@config.command(short_help="Print where the file is looked for.")
def path() -> None:
    """Print the path of the configuration file, whether it is there or not."""
    from agtrace.settings.environment import config_file

    print_lines([str(config_file()[0])])


def _as_text(value: Any) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
