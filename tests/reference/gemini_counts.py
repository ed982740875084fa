"""Count the contents of Gemini CLI logs, independently of agtrace (nothing is imported from it).

Usage: python gemini_counts.py FILE...
Prints one JSON object: for each file `{records, messages, tool_calls, failed_tool_calls}`, or null
if the file isn't a Gemini CLI log. Messages, calls and failures are those that are live at the end
of the file: replaced, rewound and dropped messages don't count.
"""

import json
import re
import sys

# shell.ts of gemini-cli: these lines, in this order, end the text for the model
SHELL_END = re.compile(r"Exit Code: (-?[0-9]+)(Signal: .*)?(Background PIDs: .*)?(Process Group PGID: .*)?")
ALSO_MODEL = {"gemini", "model"}


def documents(path):
    """Return the file as one JSON value, or as the list of its lines' values."""
    with open(path, encoding="utf-8", errors="replace") as file:
        content = file.read()
    try:
        return json.loads(content), None
    except ValueError:
        lines = [line for line in content.split("\n") if line.strip()]
    try:
        return None, [json.loads(line) for line in lines]
    except ValueError:
        return None, []


def from_document(document):
    """Return the count of records and the messages of a whole-file log."""
    if not isinstance(document, dict):
        return None
    if "sessionId" in document and "projectHash" in document and isinstance(document.get("messages"), list):
        messages = document["messages"]
        return 1 + len(messages), fold([("put", m.get("id", n), m) for n, m in enumerate(messages)])
    turns = document.get("history")
    if isinstance(turns, list) and turns and all("role" in t and "parts" in t for t in turns):
        as_messages = [
            {"type": "user" if t["role"] == "user" else "gemini", "content": t["parts"], "turn": True} for t in turns
        ]
        return 1 + len(turns), as_messages
    return None


def from_lines(lines):
    """Return the count of records and the messages of a JSONL log; its first line is the metadata."""
    if not lines or not all(isinstance(line, dict) for line in lines):
        return None
    if not {"sessionId", "projectHash"} <= lines[0].keys():
        return None
    steps = []
    for line in lines:
        if "$rewindTo" in line:
            steps.append(("rewind", line["$rewindTo"], None))
        elif "id" in line:
            steps.append(("put", line["id"], line))
        elif "messages" in line.get("$set", {}):
            steps.append(("all", None, line["$set"]["messages"]))
    return len(lines), fold(steps)


def fold(steps):
    """Replay the steps on a plain list of (id, message)."""
    state = []
    for action, key, value in steps:
        ids = [k for k, _ in state]
        if action == "put" and key in ids:
            state[ids.index(key)] = (key, value)
        elif action == "put":
            state.append((key, value))
        elif action == "rewind":
            state = state[: ids.index(key)] if key in ids else []
        else:
            state = [(m["id"], m) for m in value]
    return [m for _, m in state]


def calls(messages):
    """Yield (name, status, texts) of every live tool call."""
    for message in messages:
        if message.get("type") in ALSO_MODEL:
            for tool in message.get("toolCalls") or []:
                yield tool.get("name"), tool.get("status"), [response_text(part) for part in tool.get("result") or []]
            if message.get("turn"):
                yield from ((p["functionCall"]["name"], None, []) for p in message["content"] if "functionCall" in p)


def response_text(part):
    """Return the output or the error of a functionResponse."""
    if not isinstance(part, dict):
        return str(part)
    response = part.get("functionResponse", {}).get("response", {})
    return str(response.get("output") or response.get("error") or "")


def failed(name, status, texts):
    """Whether the status is error, or the end of a shell command's text has an exit code other than 0."""
    if status == "error":
        return True
    if name != "run_shell_command" or status != "success":
        return False
    for said in texts:
        lines = said.replace("\\n", "\n").rstrip().split("\n")
        starts = [n for n, line in enumerate(lines) if line.startswith("Exit Code: ")]
        end = SHELL_END.fullmatch("".join(lines[starts[-1] :])) if starts else None
        if end and end[1] != "0":
            return True
    return False


def counts(path):
    """Return the four figures of one file, or None."""
    document, lines = documents(path)
    found = from_document(document) if lines is None else from_lines(lines)
    if found is None:
        return None
    records, messages = found
    made = list(calls(messages))
    return {
        "records": records,
        "messages": len(messages),
        "tool_calls": len(made),
        "failed_tool_calls": sum(failed(*call) for call in made),
    }


if __name__ == "__main__":
    json.dump({path: counts(path) for path in sys.argv[1:]}, sys.stdout, indent=1)
