"""Count the contents of logs of Pi, oh-my-pi and OpenClaw, independently of agtrace (nothing is imported from it).

Usage: python pi_counts.py FILE...
Prints one JSON object: for each file `{records, tool_calls, failed, human_turns, responses, tokens}`, or null if the
file isn't in Pi's format. `tokens` are input, output, cache read and cache written.
"""

import json
import re
import sys

NEITHER = re.compile(r"(Command|Operation) aborted\s*$|^Skipped due to queued user|^Tool execution was blocked")
IN_A_SUB_AGENT = re.compile(
    r"/\d{4}-\d\d-\d\dT[^/]+/[^/]+\.jsonl$"
)  # oh-my-pi: in a folder named like its parent's log
NOT_TYPED = ("[cron:", "Read HEARTBEAT.md")


def lines(path):
    """Yield the JSON objects of a file's lines."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


def text(content):
    """Return the text of a content."""
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content or [] if isinstance(block, dict))


def count(path):
    """Return the counts of a file."""
    records = list(lines(path))
    if not any(r.get("type") == "session" and "cwd" in r for r in records[:2]):
        return None
    messages = [r["message"] for r in records if r.get("type") == "message"]
    said = [m for m in messages if m["role"] == "assistant"]
    calls = {b["id"] for m in said if isinstance(m["content"], list) for b in m["content"] if b["type"] == "toolCall"}
    bad = [m for m in messages if m["role"] == "toolResult" and m.get("isError")]
    typed = [text(m["content"]) for m in messages if m["role"] == "user"]
    answered = said + [r for r in records if r.get("type") == "model_usage"]
    usages = [
        m["usage"] for m in answered if sum(m.get("usage", {}).get(k, 0) for k in ("input", "output", "cacheRead"))
    ]
    return {
        "records": len(records),
        "tool_calls": len(calls),
        "failed": sum(not NEITHER.search(text(m["content"])) for m in bad),
        "human_turns": 0 if IN_A_SUB_AGENT.search(path) else sum(not t.startswith(NOT_TYPED) for t in typed),
        "responses": len(usages),
        "tokens": [sum(u.get(key, 0) for u in usages) for key in ("input", "output", "cacheRead", "cacheWrite")],
    }


if __name__ == "__main__":
    json.dump({path: count(path) for path in sys.argv[1:]}, sys.stdout)
