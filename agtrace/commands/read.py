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
    print_text("read_artifact", {"ref": ref, **text_asked(asked)}, as_json=as_json)
