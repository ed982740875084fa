"""Count the contents of Kiro CLI's JSONL logs, independently of agtrace (nothing is imported from it).

Usage: python kiro_counts.py FILE...
Prints one JSON object: for each file its figures, or null if it isn't a log of Kiro CLI.
"""

import json
import sys

KINDS = ("Prompt", "AssistantMessage", "ToolResults")


def lines(path):
    """Return the lines of a file as JSON values; None for a line that is none."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                yield json.loads(line)
            except ValueError:
                yield None


def blocks(line, kind):
    """Return the data of the blocks of a kind in a line."""
    return [block["data"] for block in line["data"]["content"] if block["kind"] == kind]


def failed(result):
    """Whether a result says error, or a command in it has an exit status other than 0."""
    if result["status"] == "error":
        return not json.dumps(result["content"]).count("cancelled by the user")
    ends = [part["data"].get("exit_status") for part in result["content"] if isinstance(part["data"], dict)]
    return any(end is not None and end.split()[-1] != "0" for end in ends)


def counts(path):
    """Return the figures of one file, or None."""
    found = [line for line in lines(path) if isinstance(line, dict) and line.get("kind") in KINDS]
    if not found or not all("version" in line for line in found):
        return None
    results = [result for line in found for result in blocks(line, "toolResult")]
    asked = [line for line in found if line["kind"] == "Prompt" and "".join(blocks(line, "text")).strip()]
    return {
        "records": sum(line is not None for line in lines(path)),
        "tool_calls": sum(len(blocks(line, "toolUse")) for line in found),
        "results": len(results),
        "failed": sum(map(failed, results)),
        "human": len(asked),
        "messages": sum(bool(text) for line in found if line["kind"] != "Prompt" for text in blocks(line, "text")),
        "first": min(line["data"]["meta"]["timestamp"] for line in asked),
        "last": max(line["data"]["meta"]["timestamp"] for line in asked),
    }


if __name__ == "__main__":
    json.dump({path: counts(path) for path in sys.argv[1:]}, sys.stdout, indent=1)
