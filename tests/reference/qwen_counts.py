"""Count the contents of Qwen Code's logs, independently of agtrace (nothing is imported from it).

Usage: python qwen_counts.py FILE...
Prints one JSON object: for each file `{records, tool_calls, failed, human_turns, responses, tokens}`, or null if the
file isn't a log of Qwen Code. `tokens` are input, output, cache read and cache written. Of what a
rewind dropped, only the tokens count.
"""

import json
import re
import sys

NOT_TYPED = ("<state_snapshot>", "<system-reminder>", "<session_context>")


def objects(path):
    """Yield the JSON objects of a file, also those that were jammed onto one line."""
    decoder = json.JSONDecoder()
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            line, at = line.strip(), 0
            while at < len(line):
                try:
                    value, at = decoder.raw_decode(line, at)
                except ValueError:
                    break
                if isinstance(value, dict):
                    yield value


def parts(record):
    """Return the parts of a record's message."""
    return (record.get("message") or {}).get("parts") or []


def failed(record, refused):
    """Return how many results in a record are failures."""
    told = record.get("toolCallResult") or {}
    answers = [part["functionResponse"] for part in parts(record) if "functionResponse" in part]
    bad = 0
    for answer in answers:
        said = answer.get("response") or {}
        shell = answer.get("name") == "run_shell_command" and re.search(r"\nExit Code: [1-9]", str(said.get("output")))
        error = told.get("status") == "error" if told.get("status") else "error" in said
        bad += bool(error or shell) and answer.get("id") not in refused
    return bad


def typed(record):
    """Whether a human typed a record's text."""
    if record["type"] != "user" or record.get("subtype") not in (None, "mid_turn_user_message"):
        return False
    said = " ".join(part.get("text", "") for part in parts(record)).strip()
    shown = (record.get("systemPayload") or {}).get("displayText")
    alone = record.get("provenance") in (None, "real_user") and not record.get("isSidechain")
    return alone and bool(shown or (said and not said.startswith(NOT_TYPED)))


def figures(record):
    """Return input, output and cache read of a record of tokens; None if it is none."""
    event = (record.get("systemPayload") or {}).get("uiEvent") or {}
    if str(event.get("event.name", "")).endswith("api_response"):
        names = ("input_token_count", "output_token_count", "cached_content_token_count")
        return [event.get(name) or 0 for name in names]
    usage = record.get("usageMetadata") or {}
    names = ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount")
    return [usage.get(name) or 0 for name in names] if usage else None


def live(records):
    """Return the records that no rewind dropped: it goes back to the line before a text that somebody typed."""
    kept = []
    for record in records:
        if record.get("subtype") == "rewind":
            begun = [n for n, r in enumerate(kept) if typed(r) and r["parentUuid"] == record["parentUuid"]]
            del kept[begun[0] if begun else len(kept) :]
        kept.append(record)
    return kept


def count(path):
    """Return the counts of a file."""
    records = [r for r in objects(path) if "sessionId" in r and "parentUuid" in r]
    if not any(parts(r) or "systemPayload" in r for r in records):
        return None
    events = [(r.get("systemPayload") or {}).get("uiEvent") or {} for r in records]
    refused = {event.get("call_id") for event in events if event.get("decision") == "reject"}
    measured = [r for r in records if r["type"] == "system" and figures(r)]
    if not measured and not any(r.get("isSidechain") for r in records):
        measured = [r for r in records if r["type"] == "assistant" and figures(r)]
    told = [found for found in map(figures, measured) if found[0] or found[1]]
    kept = live(records)
    calls = [part for r in kept if r["type"] == "assistant" for part in parts(r) if "functionCall" in part]
    return {
        "records": len(records),
        "tool_calls": len(calls),
        "failed": sum(failed(r, refused) for r in kept if r["type"] == "tool_result"),
        "human_turns": sum(map(typed, kept)),
        "responses": len(told),
        "tokens": [sum(f[0] - f[2] for f in told), sum(f[1] for f in told), sum(f[2] for f in told), 0],
    }


if __name__ == "__main__":
    json.dump({path: count(path) for path in sys.argv[1:]}, sys.stdout)
