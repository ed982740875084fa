"""Count the contents of OpenCode's logs, independently of agtrace (nothing is imported from it).

Usage: python opencode.py FILE_OR_FOLDER...
Prints one JSON object: for each database, tree of small files (`storage`) or export its sessions, each with `{tool_use,
tool_err, api_calls, user_turns, in, out, cr, cw}`. It reads a copy of a database, never the database itself.
"""

import json
import os
import re
import shutil
import sqlite3
import sys
import tempfile

REFUSED = re.compile(r"rejected permission|dismissed this question|specified a rule which prevents", re.I)
ABORTED = re.compile(r"\ATool execution aborted|User aborted the command")


def sessions_of_database(path):
    """Return {session id: (head, [(message, [part, ...]), ...])}."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy.db")
        for end in ("", "-wal"):
            if os.path.exists(path + end):
                shutil.copyfile(path + end, copy + end)
        connection = sqlite3.connect(copy)
        connection.row_factory = sqlite3.Row
        for row in connection.execute("SELECT * FROM session"):
            found[row["id"]] = ({"parentID": row["parent_id"]}, [])
        for row in connection.execute("SELECT * FROM message ORDER BY time_created, id"):
            parts = connection.execute("SELECT data FROM part WHERE message_id = ? ORDER BY id", (row["id"],))
            held = [json.loads(data) for (data,) in parts]
            found[row["session_id"]][1].append((json.loads(row["data"]), held))
        connection.close()
    return found


def sessions_of_tree(path):
    """Return the same for a folder `storage`."""
    everything = {"session": [], "message": [], "part": []}
    for kind, values in everything.items():
        for folder, _, names in os.walk(os.path.join(path, kind)):
            for name in sorted(names):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    values.append((os.path.basename(folder), name, json.load(file)))
    found = {}
    for _, _, head in everything["session"]:
        messages = [
            m for _, _, m in sorted(everything["message"], key=lambda one: one[1]) if m["sessionID"] == head["id"]
        ]
        held = []
        for message in messages:
            own = [p for folder, _, p in everything["part"] if message["id"] in (folder, p.get("messageID"))]
            held.append((message, own))
        found[head["id"]] = (head, held)
    return found


def sessions_of_export(path):
    """Return the same for an export; nothing for another file."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    if not isinstance(document, dict) or not str(document.get("info", {}).get("id")).startswith("ses_"):
        return {}
    head = document["info"]
    return {head["id"]: (head, [(m["info"], m["parts"]) for m in document["messages"]])}


def has_failed(part):
    """Whether a tool's part says that it failed: by its status, or by the exit code of a command."""
    state = part["state"]
    metadata = state.get("metadata") or {}
    said = str(state.get("error") if state["status"] == "error" else state.get("output"))
    if state["status"] == "error":
        return not REFUSED.search(said) and not ABORTED.search(said) and not metadata.get("interrupted")
    if state["status"] not in ("completed", "success"):
        return False
    if part["tool"] == "invalid":
        return True
    if part["tool"] == "bash" and "exit" in metadata:
        if metadata["exit"] is None:
            return "_metadata>" in said and not ABORTED.search(said[-4000:])
        return metadata["exit"] != 0
    return False


def output(tokens):
    """Return the output with reasoning, which a total may show to come in addition."""
    said, thought, total = tokens.get("output", 0), tokens.get("reasoning", 0), tokens.get("total")
    cache = tokens.get("cache", {})
    whole = tokens.get("input", 0) + said + thought + cache.get("read", 0) + cache.get("write", 0)
    return said + thought if total is not None and thought and total == whole else said


def counts(head, messages):
    """Return the figures of one session."""
    total = dict.fromkeys(("tool_use", "tool_err", "api_calls", "user_turns", "in", "out", "cr", "cw"), 0)
    for message, parts in messages:
        if message["role"] == "user":
            typed = [p for p in parts if p["type"] == "text" and not p.get("synthetic") and not p.get("ignored")]
            images = [p for p in parts if p["type"] == "file" and p.get("mime", "").startswith("image/")]
            said = any(p["text"].strip() for p in typed) or images
            total["user_turns"] += bool(said and not head.get("parentID"))
            continue
        tools = [p for p in parts if p["type"] == "tool"]
        total["tool_use"] += len(tools)
        total["tool_err"] += sum(map(has_failed, tools))
        figures = [message.get("tokens") or {}]
        if not figures[0].get("input") and not figures[0].get("output"):
            figures = [p["tokens"] for p in parts if p["type"] == "step-finish"]
        figures = [f for f in figures if any((f.get("input"), f.get("output"), *f.get("cache", {}).values()))]
        total["api_calls"] += bool(figures)
        for tokens in figures:
            cache = tokens.get("cache", {})
            total["in"] += tokens.get("input", 0)
            total["out"] += output(tokens)
            total["cr"] += cache.get("read", 0)
            total["cw"] += cache.get("write", 0)
    return total


def count(path):
    """Return the figures of each session in a database, a tree or an export."""
    path = str(path)
    if os.path.isdir(path):
        found = sessions_of_tree(path)
    elif path.endswith(".db"):
        found = sessions_of_database(path)
    else:
        found = sessions_of_export(path)
    return {id: counts(*told) for id, told in found.items()}


if __name__ == "__main__":
    json.dump({path: count(path) for path in sys.argv[1:]}, sys.stdout, indent=1)
