"""Token counts (indexer/README.md).

A message has the tokens of its output. What went in, and what came from the cache, is only known when the CLI ends:
`session.shutdown` sums it up by model. So a run of the CLI has one more record of usage for each model, without a
step, whose output is what no message had. Until the end it is incomplete.

A session that is resumed has several such sums. From 1.0.78 they go on; until about May 2026 each run began at zero.
The log itself decides: sums with less output than all messages so far had are those of one run.
"""

from __future__ import annotations

from typing import Any

from agtrace_schema.events import Notification, TokenUsage

from agtrace_indexer.events.drafts import Draft, LogState, Said
from agtrace_indexer.events.json_values import count, fields, text
from agtrace_indexer.events.strings import first_identifier, masked
from agtrace_indexer.providers.copilot.envelope import Entry
from agtrace_indexer.providers.notes import remember

_FIGURES = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens", "reasoningTokens")
_INPUT, _READ, _WRITTEN, _OUTPUT, _REASONING = range(5)
_RESPONSES_REMEMBERED = 32
_MODELS = 64
_LONGEST_MODEL = 200


def begin_counting(session: str | None, state: LogState) -> None:
    """Begin with nothing: the first line of a session."""
    state.memory["used"] = {"session": session, "run": 0, "said": 0, "told": 0, "by": {}, "sums": {}, "of": {}}


def response_usage(entry: Entry, step: str, state: LogState) -> list[Said]:
    """Return the output of a response; a later chunk of it replaces the figure. Zero is unknown: no answer is empty."""
    output = count(entry.data.get("outputTokens"))
    if output is None:
        return []
    response = first_identifier(entry.data.get("apiCallId"), entry.data.get("messageId"))
    model = text(entry.data.get("model")) or state.sessions[entry.thread].model
    _note_output(response, model, output, state)
    usage = TokenUsage(response, model, None, None, None, None, output or None, None, complete=output > 0)
    said: list[Said] = [Draft(usage, entry.at, step, entry.thread, response and f"usage/{response}")]
    return said + _awaited(entry, model, state)


def shutdown(entry: Entry, state: LogState) -> list[Said]:
    """Read the end of a run: the sums by model, less what was counted before."""
    used = _used(state)
    grown = _growth(_sums(entry.data.get("modelMetrics")), used)
    spoken, unsaid = dict(used["by"]), max(sum(sums[_OUTPUT] for sums in grown.values()) - used["told"], 0)
    said: list[Said] = [Draft(Notification(entry.kind, _ending(entry)), entry.at, ends_turn=True)]
    for number, (model, sums) in enumerate((model, sums) for model, sums in grown.items() if any(sums)):
        more = min(max(sums[_OUTPUT] - spoken.get(model, 0), 0), unsaid)
        unsaid -= more
        said.append(_of_a_run(_usage(model, sums, more), entry, _key(used, number)))
    used.update(run=used["run"] + 1, told=0, by={}, awaited=False)
    return said


def compaction_usage(entry: Entry) -> list[Said]:
    """Return what a summary cost: its request is in no sum of the session."""
    sums = _figures(entry.data.get("compactionTokensUsed"))
    if not any(sums):
        return []
    model = text(fields(entry.data.get("compactionTokensUsed")).get("model"))
    usage = _usage(model, sums, sums[_OUTPUT])
    return [Draft(usage, entry.at, thread=entry.thread, of_session=True)]


def _used(state: LogState) -> dict[str, Any]:
    if "used" not in state.memory:
        begin_counting(state.sessions[""].id, state)
    used: dict[str, Any] = state.memory["used"]
    return used


def _note_output(response: str | None, model: str | None, output: int, state: LogState) -> None:
    """Add to the output of all messages and of this run; of a response that comes again, only the difference."""
    used = _used(state)
    more = output - (used["of"].get(response, 0) if response else 0)
    if response:
        remember(used["of"], response, output, _RESPONSES_REMEMBERED)
    used["said"] += more
    used["told"] += more
    if model is not None and (model in used["by"] or len(used["by"]) < _MODELS):
        name = _model(model)
        used["by"][name] = used["by"].get(name, 0) + more


def _awaited(entry: Entry, model: str | None, state: LogState) -> list[Said]:
    """Return an incomplete record at the first response of a run: it is replaced when the run ends."""
    used = _used(state)
    if used.get("awaited"):
        return []
    used["awaited"] = True
    usage = TokenUsage(None, model, None, None, None, None, None, None, complete=False)
    return [_of_a_run(usage, entry, _key(used, 0))]


def _of_a_run(usage: TokenUsage, entry: Entry, key: str) -> Draft:
    return Draft(usage, entry.at, key=key, of_session=True)


def _key(used: dict[str, Any], number: int) -> str:
    return f"run/{used['session']}/{used['run']}/{number}"


def _growth(sums: dict[str, list[int]], used: dict[str, Any]) -> dict[str, list[int]]:
    """Return what the sums add to those counted before, which they contain unless the run began at zero."""
    before: dict[str, list[int]] = used["sums"]
    goes_on = sum(found[_OUTPUT] for found in sums.values()) >= used["said"]
    grown: dict[str, list[int]] = {}
    for model, found in sums.items():
        counted = before.get(model, [0] * len(_FIGURES))
        grown[model] = [max(one - other, 0) for one, other in zip(found, counted, strict=True)] if goes_on else found
        before[model] = [one + other for one, other in zip(counted, grown[model], strict=True)]
    return grown


def _sums(metrics: Any) -> dict[str, list[int]]:
    """Return the figures of each model."""
    named = [(_model(model), _figures(fields(told).get("usage"))) for model, told in fields(metrics).items()]
    return dict(named[:_MODELS])


def _figures(value: Any) -> list[int]:
    usage = fields(value)
    return [count(usage.get(name)) or 0 for name in _FIGURES]


def _usage(model: str | None, sums: list[int], output: int) -> TokenUsage:
    """Convert Copilot's figures, whose input includes tokens read from and written to the cache."""
    fresh = max(sums[_INPUT] - sums[_READ] - sums[_WRITTEN], 0)
    reasoning = min(sums[_REASONING], output) if output else None
    return TokenUsage(None, model, fresh, sums[_WRITTEN], None, sums[_READ], output, reasoning)


def _ending(entry: Entry) -> str:
    """Return how the CLI ended, and why if it didn't end as usual."""
    told = (text(entry.data.get("shutdownType")), text(entry.data.get("errorReason")))
    return ": ".join(filter(None, told))


def _model(name: str) -> str:
    return masked(name)[:_LONGEST_MODEL]
