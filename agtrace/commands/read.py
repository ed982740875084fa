"""`agtrace read`: print what a reference refers to."""

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
    """Print what REF refers to, as text: every answer names such a reference as its artifact_ref.

    \b
      agtrace read ax://event/fb3cff44/42
      agtrace read ax://session/fb3cff44 --lines 1:200
      agtrace read ax://analysis/fb3cff44
      agtrace read ax://health
    """
    print_text("read_artifact", {"ref": ref, **text_asked(asked)}, as_json=as_json)
