"""Count the contents of Goose's sessions, independently of agtrace (nothing is imported from it).

Usage: python goose_counts.py DATABASE|FILE...
Prints one JSON object: for each session of a database, and for each file, its figures.
"""

import json
import sqlite3
import sys


def sessions(path):
    """Return the messages and the requests of each session: (role, metadata, blocks), (input, output)."""
    if path.endswith(".jsonl"):
        with open(path, encoding="utf-8") as file:
            head, *lines = map(json.loads, file)
        told = (head.get("accumulated_input_tokens"), head.get("accumulated_output_tokens"))
        messages = [(line["role"], line.get("metadata") or {}, line["content"]) for line in lines]
        return {path: (head.get("session_type"), messages, [told] if any(told) else [])}
    connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    found = {}
    for session, kind in connection.execute("SELECT id, session_type FROM sessions").fetchall():
        messages = connection.execute(
            "SELECT role, metadata_json, content_json FROM messages WHERE session_id = ? ORDER BY id", (session,)
        )
        requests = connection.execute(
            "SELECT input_tokens, output_tokens FROM usage_ledger WHERE session_id = ?", (session,)
        )
        decoded = [(role, json.loads(told or "{}"), json.loads(blocks)) for role, told, blocks in messages]
        found[f"{path}/{session}"] = kind, decoded, requests.fetchall()
    connection.close()
    return found


def failed(block):
    """Whether an execution never began, or failed; not if the user declined it."""
    result = block["toolResult"]
    if "declined to run this tool" in json.dumps(result):
        return False
    value = result.get("value")
    return result["status"] == "error" or (isinstance(value, dict) and bool(value.get("isError")))


def thoughts(messages):
    """Count the messages with thoughts other than those of the model's message before."""
    said = ["".join(b.get("thinking", "") for b in blocks) for role, _, blocks in messages if role == "assistant"]
    said = [one for one in said if one]
    return sum(one != before for one, before in zip(said, [None, *said], strict=False))


def is_human(kind, role, told, blocks):
    """Whether a human wrote a message."""
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    mine = role == "user" and told.get("userVisible", True) and kind in (None, "user", "terminal", "gateway", "acp")
    return bool(mine and texts and not texts[0].startswith(("<info-msg>", "<todo>")))


def counts(path):
    """Return the figures of each session."""
    figures = {}
    for name, (kind, messages, requests) in sessions(str(path)).items():
        blocks = [(role, block) for role, _, content in messages for block in content]
        results = [block for _, block in blocks if block["type"] == "toolResponse"]
        figures[name] = {
            "tool_calls": sum(block["type"] == "toolRequest" for _, block in blocks),
            "results": len(results),
            "failed": sum(map(failed, results)),
            "human": sum(is_human(kind, *message) for message in messages),
            "messages": sum(
                role == "assistant" and block["type"] == "text" and bool(block["text"]) for role, block in blocks
            ),
            "thoughts": thoughts(messages),
            "responses": len(requests),
            "input": sum(sent or 0 for sent, _ in requests),
            "output": sum(made or 0 for _, made in requests),
        }
    return figures


if __name__ == "__main__":
    json.dump({key: value for path in sys.argv[1:] for key, value in counts(path).items()}, sys.stdout, indent=1)
