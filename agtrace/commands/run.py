"""`agtrace run`: run an agent with a server of its own that reads, runs and searches with a question."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from agtrace.commands.options import AgentOption, settings_options
from agtrace.pruning.agents import AGENTS, end_like, place
from agtrace.pruning.runner import Plan
from agtrace.pruning.runner import run as run_plan
from agtrace.pruning.states import RunLog


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
    agent = AGENTS[provider]
    words = command or (agent.program,)
    if not no_pruner and place(agent, words) is None:
        sys.stderr.write(f"agtrace: the command doesn't name {agent.program}, so it runs without the server\n")
    written = RunLog.usual() if log is None else RunLog.at(log)
    carry_out(Plan(agent, words, not no_pruner, written))


def carry_out(plan: Plan) -> NoReturn:
    """Run an agent, and end this process as the agent ended. Raises `NotStarted`."""
    try:
        code = run_plan(plan)
    finally:
        plan.log.close()
    if code < 0:
        end_like(-code)
    sys.exit(code)
