"""A session at any level of detail, or by its sections, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from agtrace_schema.events import Outcome
from rich.table import Table
from rich.text import Text

from agtrace.render.terminal import (
    OUT,
    STYLES,
    Row,
    entry,
    figure,
    fills,
    heading,
    indented,
    nothing,
    plain,
    print_table,
    summary,
)
from agtrace.render.text import told_focus
from agtrace.sessions.landmarks import deeds_phrase
from agtrace.text.numbers import counted, dollars, how_made, seconds, short, spent
from agtrace.times import when

_LINES_OF_TEXT = 8
_TOKEN_KINDS = (
    ("input_tokens", "in"), ("cache_creation_5m_tokens", "cache written"),
    ("cache_creation_1h_tokens", "cache written for 1 h"), ("cache_read_tokens", "cache read"),
    ("output_tokens", "out"), ("reasoning_tokens", "reasoning in it"),
)  # fmt: skip


class SessionView:
    """A printer of a session's pages, one after the other: a turn that continues on the next page has one heading."""

    def __init__(self) -> None:
        self._turn: object = self
        self._step: object = self

    def page(self, answer: dict[str, Any], *, first: bool) -> None:
        """Print a page of turns, or a chunk of the full text; before the first one, the facts of the session."""
        data = answer["data"]
        if first:
            summary(answer)
            _facts(data)
            told_focus(answer)
        if "text" in data:
            OUT.file.write(plain(data["text"]))
            return
        self.turns(data.get("turns", []))

    def turns(self, turns: Iterable[dict[str, Any]]) -> None:
        """Print turns, or the parts of them on this page."""
        for turn in turns:
            self._print_turn(turn)

    def _print_turn(self, turn: dict[str, Any]) -> None:
        index = turn.get("turn_index")
        if index != self._turn:
            self._turn, self._step = index, self
            OUT.print()
            OUT.print(_turn_head(turn))
            request = turn.get("user_message")
            if index is not None or request:
                OUT.print(indented(Text(plain(request or "(no request)"), style="bold")))
            if turn.get("answer"):
                event, text = turn["answer"]
                OUT.print(indented(Text(f"{plain(text)}  (event {event})", style="dim")))
        for event in turn.get("events", []):
            kind = f"{event['event_type']} {plain(event.get('kind', ''))}".strip()
            entry(
                str(event["event_index"]), Text(f"{kind}: ", style="dim").append(_short(event["text"]), style="not dim")
            )
        for step in turn.get("steps", []):
            if "summary" in step:
                style = "red" if step.get("failed_tools") else ""
                entry(str(step["step_index"]), Text(plain(step["summary"]), style=style))
                if step.get("error"):
                    entry("", Text(plain(step["error"]), style="red"))
                if step.get("reasoning"):
                    entry("", Text(plain(step["reasoning"]), style="dim italic"))
            else:
                self._print_step(step)

    def _print_step(self, step: dict[str, Any]) -> None:
        index = step.get("step_index")
        if index is not None and index != self._step:
            self._step = index
            head = Text(f"step {index}", style="bold dim")
            tokens = step.get("tokens") or {}
            said = [f"{short(tokens['output'])} out"] if tokens.get("output") else []
            held = step.get("context_tokens") or sum(tokens.values()) - tokens.get("output", 0) - tokens.get(
                "reasoning", 0
            )
            said += [f"context {short(held)}"] if held else []
            OUT.print(indented(head.append(f"  {', '.join(said)}" if said else "", style="not bold dim")))
        for part, style in (("reasoning", "dim italic"), ("message", "")):
            if part in step:
                entry(str(step[part]["event_index"]), Text(_short(step[part]["text"]), style=style))
        for tool in step.get("tools", []):
            call, outcome = tool.get("call") or {}, tool.get("outcome", "")
            head = Text(plain(call.get("name", "result")), style="cyan")
            head.append(f"  {outcome}", style=STYLES.get(outcome, ""))
            if ms := tool.get("duration_ms"):
                head.append(f"  {ms} ms" if ms < 1000 else f"  {ms / 1000:.1f} s", style="dim")
            if tool.get("agent"):
                head.append(f"  started {tool['agent']}", style="dim")
            entry(str(tool.get("call_event", tool.get("result_event", ""))), head)
            for line in _arguments(call.get("arguments")):
                entry("", Text(line, style="dim"), deep=2)
            result = _short(tool.get("result", {}).get("content", ""))
            if result:
                entry("", Text(result, style=STYLES["failed"] if outcome == "failed" else ""), deep=2)


def _facts(data: dict[str, Any]) -> None:
    if data.get("title"):
        OUT.print(Text(plain(data["title"]), style="italic"))
    names = ("provider", "version", "model", "root_path", "branch")
    _dim("  ".join(plain(str(data[name])) for name in names if data.get(name)))
    if data.get("stats") is not None:
        print_stats(data)
        stats = data["stats"]
        said = []
        if data.get("parent_id"):
            call = f":{data['started_by']}" if "started_by" in data else ""
            said.append(f"{data['kind']} of {data['parent_id']}{call}")
        if stats.get("copied", {}).get("turns"):
            said.append(f"{counted(stats['copied']['turns'], 'turn')} copied from it, not counted here")
        if data.get("children"):
            said.append("started " + ", ".join(child["id"] for child in data["children"]))
        if stats.get("with_children"):
            whole = stats["with_children"]
            if whole.get("total_tokens") is not None:
                said.append(f"with sub-agents {short(whole['total_tokens'])} tokens {_cost(whole)}".rstrip())
        _dim("  ".join(said))
    if data.get("failing_turns"):
        failing = data["failing_turns"]
        more = failing["total"] - len(failing["turns"])
        named = ", ".join(map(str, failing["turns"])) + (f" and {more} more" if more else "")
        OUT.print(Text(f"tools failed in {'turn' if failing['total'] == 1 else 'turns'} {named}", style="red"))
    if data.get("last_message"):
        event, text = data["last_message"]
        _dim(f"it ended with (event {event}): {plain(text)}")
    if data.get("open_call"):
        event, tool, text = data["open_call"]
        _dim(f"the log ends on a call without a result (event {event}): {plain(tool)} {plain(text)}")


def print_stats(data: dict[str, Any]) -> None:
    """Print how long a session took, the tokens it used and what it cost."""
    stats = data["stats"]
    lasted, active = seconds(stats.get("duration_seconds")), seconds(stats.get("active_seconds"))
    spans = (when(data.get("start_time")), lasted and f"lasted {lasted}", active and f"active {active}", _cost(stats))
    _dim("  ".join(filter(None, spans)))
    _dim(_tokens(stats))
    _dim(deeds_phrase(stats.get("done", {})))
    for model in stats.get("models", []):
        _dim(f"  {plain(model['model'])}: {short(model.get('total_tokens'))} {_cost(model)}".rstrip())


def _dim(line: str) -> None:
    if line:
        OUT.print(Text(line, style="dim"))


def _tokens(stats: dict[str, Any]) -> str:
    if stats.get("total_tokens") is None:
        return ""
    kinds = ", ".join(f"{short(stats['tokens'][kind])} {name}" for kind, name in _TOKEN_KINDS
                      if stats["tokens"].get(kind))  # fmt: skip
    total = how_made(f"{short(stats['total_tokens'])} tokens", stats.get("tokens_made"))
    peak = short(stats.get("peak_context_tokens"))
    window = f" of {short(stats['context_window'])}" if stats.get("context_window") else ""
    context = f"largest context {peak}{window}" if peak else ""
    return "  ".join(filter(None, (f"{total}: {kinds}", context)))


def _cost(figures: dict[str, Any]) -> str:
    return how_made(dollars(figures.get("cost_usd")), figures.get("cost_made"))


def _turn_head(turn: dict[str, Any]) -> Text:
    if turn.get("turn_index") is None:
        return Text("outside of turns", style="bold")
    head = Text(f"turn {turn['turn_index']}  ", style="bold")
    if turn.get("timestamp"):
        head.append(f"{when(turn['timestamp'])}  ", style="not bold dim")
    if turn.get("outcome"):
        head.append(f"{turn['outcome']}  ", style=STYLES[turn["outcome"]])
    if "step_count" in turn:
        failed = turn.get("failed_tools")
        head.append(
            f"{counted(turn['step_count'], 'step')}, {counted(turn['tool_calls'], 'tool')}", style="not bold dim"
        )
        head.append(f", {failed} failed" if failed else "", style="not bold red")
        tokens = sum((turn.get("stats") or {}).get(kind, 0) for kind, _ in _TOKEN_KINDS[:5])
        head.append(f"  {short(tokens)} tokens" if tokens else "", style="not bold dim")
    if turn.get("copied"):
        head.append("  copied", style="not bold yellow")
    return head


def _arguments(arguments: Any) -> Iterable[str]:
    if isinstance(arguments, dict):
        return [f"{plain(str(name))}: {_short(str(value), 3)}" for name, value in arguments.items()]
    return [_short(str(arguments), 3)] if arguments else []


def _short(text: str, most: int = _LINES_OF_TEXT) -> str:
    """Return the first lines of a text, and how many more there are."""
    lines = plain(text).strip("\n").splitlines()
    left_out = f"\n... {len(lines) - most} more lines" if len(lines) > most else ""
    return "\n".join(lines[:most]) + left_out


FACTS = frozenset({"session", "stats"})
"""Sections that aren't lists."""

_WIDE = 70
_TIMES = frozenset({"start_time", "end_time"})


def section(name: str, content: Any) -> None:
    """Print a section under its name; `content` is all items of a list, or for facts the answer that has them."""
    heading(name if name in FACTS else f"{name}: {_count_text(name, content)}")
    if name == "session":
        _session(content["data"])
    elif name == "stats":
        print_stats(content["data"])
    elif name == "turns":
        SessionView().turns(content)
    elif content:
        rows, right, wide_only = _LISTS[name]
        print_table([rows(item) for item in content], right, frozenset() if OUT.width >= _WIDE else wide_only)
    else:
        nothing("none")


def _count_text(name: str, items: list[Any]) -> str:
    """Return the number of items; of failures by outcome if not all of them failed: `2 failed, 1 rejected`."""
    outcomes = Counter(item["outcome"] for item in items) if name == "failures" else Counter()
    if not outcomes.keys() - {Outcome.FAILED}:
        return f"{len(items):,}"
    return ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common())


def _session(data: dict[str, Any]) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0), expand=fills())
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    for name, value in data.items():
        if not isinstance(value, list | dict) and not name.startswith("total_"):
            shown = when(value) if name in _TIMES else plain(str(value))
            grid.add_row(name.replace("_", " "), Text(shown))
    OUT.print(grid)


def _outcome(item: dict[str, Any]) -> Text:
    return Text(item["outcome"], style=STYLES.get(item["outcome"], ""))


def _landmark(item: list[Any]) -> Row:
    event_index, kind, name, verdict, detail = (*item, None, None, None)[:5]
    return {
        "event": str(event_index),
        "what": kind.replace("_", " "),
        "verdict": Text(verdict or "", style=STYLES.get(verdict or "", "")),
        "which": Text(plain(f"{name or ''}  {detail or ''}".strip())),
    }


_LISTS: dict[str, tuple[Callable[[Any], Row], frozenset[str], frozenset[str]]] = {
    "tools": (lambda item: {
        "calls": figure(item["calls"]), "failed": Text(figure(item["failed"] or None), style=STYLES["failed"]),
        "tool": Text(plain(item["name"])),
    }, frozenset({"calls", "failed"}), frozenset()),
    "files": (lambda item: {
        "writes": figure(item["writes"] or None), "reads": figure(item["reads"] or None),
        "file": Text(plain(item["path"])),
    }, frozenset({"writes", "reads"}), frozenset()),
    "failures": (lambda item: {
        "event": str(item.get("result_event", item["call_event"])), "turn": str(item.get("turn_index", "")),
        "tool": Text(plain(item["tool"])[:20]), "outcome": _outcome(item), "what it said": Text(plain(item["quote"])),
    }, frozenset({"event", "turn"}), frozenset({"turn", "outcome"})),
    "children": (lambda item: {
        "session": plain(item["id"]), "by event": str(item.get("started_by", "")), "kind": plain(item["kind"]),
    }, frozenset({"by event"}), frozenset()),
    "requests": (lambda item: {
        "event": str(item["event_index"]), "turn": str(item.get("turn_index", "")),
        "request": Text(plain(item["text"])),
    }, frozenset({"event", "turn"}), frozenset({"turn"})),
    "landmarks": (_landmark, frozenset({"event"}), frozenset()),
    "models": (lambda item: {
        "responses": figure(item["responses"]), "tokens": short(item.get("total_tokens")),
        "cost": spent(item.get("cost_usd"), item.get("cost_made")), "model": Text(plain(item["model"])),
    }, frozenset({"responses", "tokens", "cost"}), frozenset({"responses"})),
}  # fmt: skip
"""For each list: how an item becomes a row, its columns of numbers, and those left out on a narrow terminal."""
