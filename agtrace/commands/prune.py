"""`agtrace prune` serves tools that answer a question, `run` an agent with them, `pruner` what chooses the lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import click

from agtrace.commands.options import Address, AgentOption, settings_options
from agtrace.problems import SettingError
from agtrace.pruning.agents import AGENTS, end_like, place

if TYPE_CHECKING:
    from agtrace.pruning.runner import Plan


@click.command()
@click.option(
    "--http",
    "address",
    type=Address(),
    default="127.0.0.1:8000",
    show_default=True,
    help="Listen here; port 0 picks a free one.",
)
@settings_options
def pruner(address: tuple[str, int]) -> None:
    """Serve the built-in pruner over HTTP, with the same API as SWE-Pruner.

    POST /prune takes {"query": QUESTION, "code": TEXT} and answers with the lines that the question is about, in
    pruned_code. It needs no model and no GPU, and listens on loopback only.

    \b
      agtrace pruner --http 127.0.0.1:8000
      jq -Rs '{query: "Which timeout is used?", code: .}' server.py | curl -s --json @- http://127.0.0.1:8000/prune
    """
    from agtrace.pruning.pruners import serve
    from agtrace.serving.ending import end
    from agtrace.serving.http_auth import is_loopback

    host, port = address
    if not is_loopback(host):
        raise SettingError(f"{host} can be reached from other machines, and the pruner has no token")
    end(serve(host, port))


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option(
    "--provider", cls=AgentOption, type=click.Choice(list(AGENTS)), required=True,
    help="The agent that the command runs.",
)  # fmt: skip
@click.option("--no-pruner", is_flag=True, help="Run the command as it is, without a server.")
@click.option(
    "--log", metavar="FILE", help="Log to this file, - for stderr; by default run.log in the data folder at a terminal."
)
@settings_options
def run(command: tuple[str, ...], provider: str, no_pruner: bool, log: str | None) -> None:
    """Run an agent with read, bash and grep tools that return only the lines that answer a question.

    For as long as the agent runs, there is a server like `agtrace prune` for it alone; nothing in the agent's settings
    changes. Without a command the agent is started by its name. A command must name it, as all of these do, and start
    it on this machine, outside any container; its arguments, signals and exit code are its own. If the server can't be
    started, or fails, the agent runs without it. Whether it may use the tools without asking is set in the agent.

    \b
      agtrace run --provider claude
      agtrace run --provider claude -- claude -p "why does the build fail?"
      agtrace run --provider codex -- npx @openai/codex exec "why does the build fail?"
    """
    from agtrace.pruning.runner import Plan
    from agtrace.pruning.states import RunLog

    agent = AGENTS[provider]
    words = command or (agent.program,)
    if not no_pruner and place(agent, words) is None:
        sys.stderr.write(f"agtrace: the command doesn't name {agent.program}, so it runs without the server\n")
    written = RunLog.usual() if log is None else RunLog.at(log)
    carry_out(Plan(agent, words, not no_pruner, written))


def carry_out(plan: Plan) -> NoReturn:
    """Run an agent, and end this process as the agent ended. Raises `NotStarted`."""
    from agtrace.pruning.runner import run

    try:
        code = run(plan)
    finally:
        plan.log.close()
    if code < 0:
        end_like(-code)
    sys.exit(code)


@click.command()
@click.option("--http", "address", type=Address(), help="Serve over HTTP here, at /mcp; port 0 picks a free one.")
@settings_options
def prune(address: tuple[str, int] | None) -> None:
    """Serve read, bash and grep to an agent, over MCP on stdin and stdout.

    With `context_focus_question`, a long output comes back as the lines that the question is about; without it, or if
    anything goes wrong, as it is. The setting pruner.endpoint says which pruner is asked: by default a built-in one.

    \b
      claude mcp add --scope user agtrace_prune -- agtrace prune
      codex mcp add agtrace_prune -- agtrace prune

    With --http, clients must send the token, AGTRACE_HTTP_TOKEN or the one of `agtrace mcp --show-token`. A line on
    stderr says when it is ready. `agtrace run` does all of this for one run of an agent.
    """
    from agtrace.pruning.configuration import configured

    found = configured()
    if address is None:
        from agtrace.pruning.server import serve_stdio
        from agtrace.serving.ending import end_with_client

        end_with_client()
        serve_stdio(found)
        return
    from agtrace.pruning.server import serve_http
    from agtrace.serving.ending import end
    from agtrace.serving.http_auth import is_loopback, load_token

    host, port = address
    if not is_loopback(host):
        raise SettingError(f"{host} can be reached from other machines: whoever reaches the server can run commands")
    settings = found.settings
    token = settings.http.token or load_token(settings.token_file)
    end(serve_http(found, host, port, token))
