"""`agtrace read`: print what a reference points to."""

from __future__ import annotations

from typing import Any

import click

from agtrace.commands.options import as_json, cursor, text_options
from agtrace.commands.texts import print_text, text_asked


@click.command()
@click.argument("ref")
@text_options
@cursor
@as_json
def read(ref: str, as_json: bool, **asked: Any) -> None:
    """Print what REF points to, as text: a reference is an artifact_ref from an answer.

    \b
      agtrace read ax://event/fb3cff44/42
      agtrace read ax://session/fb3cff44 --lines 1:200
      agtrace read ax://session/fb3cff44 --focus "Which migration was rolled back?"
      agtrace read ax://analysis/fb3cff44
      agtrace read ax://health
    """
    if not as_json and not any(asked.values()) and _as_a_command(click.get_current_context(), ref):
        return
    print_text("read_artifact", {"ref": ref, **text_asked(asked)}, as_json=as_json)


def _as_a_command(context: click.Context, ref: str) -> bool:
    """Print what is JSON to an agent as the command for people does; return whether there is one."""
    from agtrace.problems import InvalidArtifactRef
    from agtrace.sessions.references import parse

    try:
        found = parse(ref)
    except InvalidArtifactRef:
        return False
    if found.kind == "health":
        from agtrace.commands.health import health

        context.invoke(health, as_json=False)
    elif found.kind == "analysis":
        from agtrace.commands.analyze import analyze

        context.invoke(analyze, session=found.session, as_json=False)
    else:
        return False
    return True
