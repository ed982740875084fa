"""Count the contents of Copilot CLI's logs, independently of agtrace (nothing is imported from it).

Usage: python copilot.py FILE...
Prints one JSON object: for each file its figures, or null if it isn't a log of Copilot CLI. It looks at whole files
and follows the vendor's schema: what is repeated counts once, by the ids of lines, calls and responses.
"""

import json
import re
import sys

EXIT = re.compile(r"<(?:shellId: \S+ completed with|exited with) exit code (-?[0-9]+)>$")
SHELLS = ("bash", "powershell", "local_shell", "read_bash", "stop_bash", "write_bash")
KINDS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")


def lines(path):
    """Return the events of a file, each once; NULs behind the last line and cut lines are no events."""
    seen, found = set(), []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file.read().split("\n"):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if not isinstance(event, dict) or not isinstance(event.get("data"), dict) or event.get("ephemeral"):
                continue
            key = json.dumps(event, sort_keys=True)
            if key not in seen:
                seen.add(key)
                found.append(event)
    return found


def of(events, *kinds):
    """Return the data of the events of some types."""
    return [event["data"] for event in events if event.get("type") in kinds]


def names(events):
    """Return the tool of every call, whoever asked for it."""
    asked = [request for message in of(events, "assistant.message") for request in message.get("toolRequests") or []]
    calls = {request["toolCallId"]: request.get("name") for request in asked}
    for call in of(events, "tool.execution_start", "tool.user_requested"):
        calls.setdefault(call["toolCallId"], call.get("toolName"))
    return calls


def ending(result, tool, refused):
    """Return how an execution ended: ok, failed, rejected, running."""
    telemetry = result.get("toolTelemetry") or {}
    category = (telemetry.get("properties") or {}).get("shell_error_category")
    if result.get("success") is not True:
        code = (result.get("error") or {}).get("code")
        return "rejected" if result["toolCallId"] in refused or code in ("denied", "rejected") else "failed"
    text = str((result.get("result") or {}).get("content") or "")
    if category == "command_timeout":
        return "running"
    code = (telemetry.get("metrics") or {}).get("exit_code")
    if code is None and tool in SHELLS and (said := EXIT.search(text.rstrip())):
        code = int(said[1])
    return "failed" if code else "ok"


def human(event):
    """Whether somebody typed this: no agent, no skill, no autopilot."""
    data = event["data"]
    if event.get("agentId") or data.get("parentToolCallId") or data.get("isAutopilotContinuation"):
        return False
    return data.get("source") in (None, "", "user") and bool(data.get("content"))


def spoken(events):
    """Return the output of every response: of one that comes in several pieces, the last figure."""
    figures = {}
    for number, message in enumerate(of(events, "assistant.message")):
        if message.get("outputTokens") is not None:
            figures[message.get("apiCallId") or message.get("messageId") or number] = message["outputTokens"]
    return figures


def used(events):
    """Return the tokens of all runs: input without cache, output, cache read, cache written.

    A sum at the end of a run contains those before it if its output is at least that of all messages so far. It may
    have more output than the messages of its run, never less.
    """
    total, before, so_far, run = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0), [], []
    for event in events:
        if event["type"] == "session.start":
            before, so_far = dict.fromkeys(KINDS, 0), []
        so_far.append(event)
        run.append(event)
        if event["type"] == "session.compaction_complete":
            add(total, event["data"].get("compactionTokensUsed"))
        if event["type"] == "session.shutdown":
            sums = dict.fromkeys(KINDS, 0)
            for model in (event["data"].get("modelMetrics") or {}).values():
                add(sums, model.get("usage"))
            goes_on = sums["outputTokens"] >= sum(spoken(so_far).values())
            grown = {kind: sums[kind] - before[kind] * goes_on for kind in KINDS}
            grown["outputTokens"] = max(grown["outputTokens"], sum(spoken(run).values()))
            add(total, grown)
            before, run = {kind: sums[kind] + before[kind] * (not goes_on) for kind in KINDS}, []
    fresh = total["inputTokens"] - total["cacheReadTokens"] - total["cacheWriteTokens"]
    output = total["outputTokens"] + sum(spoken(run).values())
    return fresh, output, total["cacheReadTokens"], total["cacheWriteTokens"]


def add(total, figures):
    """Add the figures that are there."""
    for kind in KINDS:
        total[kind] += (figures or {}).get(kind) or 0


def counts(path):
    """Return the figures of one file, or None."""
    events = lines(path)
    if not any("parentId" in event and "timestamp" in event for event in events):
        return None
    calls, results = names(events), {}
    decisions = of(events, "permission.completed")
    kinds = {decided.get("toolCallId"): (decided.get("result") or {}).get("kind") or "" for decided in decisions}
    refused = {call for call, kind in kinds.items() if kind.startswith("denied")}
    for number, result in enumerate(of(events, "tool.execution_complete")):
        ended = ending(result, calls.get(result["toolCallId"]), refused)
        results[result["toolCallId"], number] = ended
    endings = list(results.values())
    fresh, output, read, written = used(events)
    return {
        "tool_calls": len(calls),
        "results": len(endings),
        "failed": endings.count("failed"),
        "rejected": endings.count("rejected"),
        "human": sum(map(human, [event for event in events if event["type"] == "user.message"])),
        "messages": sum(bool(message.get("content")) for message in of(events, "assistant.message")),
        "responses": len(spoken(events)),
        "input": fresh,
        "output": output,
        "cache_read": read,
        "cache_written": written,
    }


if __name__ == "__main__":
    json.dump({path: counts(path) for path in sys.argv[1:]}, sys.stdout, indent=1)
