"""Count the contents of Cursor's transcripts, independently of agtrace (nothing is imported from it).

Usage: python cursor_counts.py FILE...
Prints one JSON object: for each file its figures, or null if it isn't a transcript.
"""

import json
import re
import sys

CALLS = ("tool_use", "tool_call")
RESULTS = ("tool_result", "tool-result")


def lines(path):
    """Return the lines of a file as JSON objects."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def blocks(found, role):
    """Return the blocks of all lines of a role."""
    return [block for line in found if line.get("role") == role for block in line["message"]["content"]]


def requests(texts):
    """Count what was typed: tagged texts, and untagged ones before the first of them that begin with no other tag."""
    count, tagged = 0, False
    for text in texts:
        found = re.findall(r"<user_query>\s*(\S)", text)
        tagged = tagged or "<user_query>" in text
        count += len(found) if "<user_query>" in text else not tagged and not text.lstrip().startswith("<")
    return count


def counts(path):
    """Return the figures of one file, or None."""
    found = lines(path)
    if sum(set(line) <= {"role", "message", "metadata"} and "message" in line for line in found) < 2:
        return None
    asked, said = blocks(found, "user"), blocks(found, "assistant")
    texts = [block["text"] for block in asked if block["type"] == "text"]
    everything = asked + said
    return {
        "records": len(found),
        "tool_calls": sum(block["type"] in CALLS for block in everything),
        "results": sum(block["type"] in RESULTS for block in everything),
        "failed": sum(block.get("is_error") is True for block in everything if block["type"] in RESULTS),
        "human": 0 if "subagents" in str(path).replace("\\", "/").split("/")[:-1] else requests(texts),
        "messages": sum(block["type"] == "text" and block["text"] not in ("", "[REDACTED]") for block in said),
        "thoughts": sum(block["type"] == "thinking" for block in said),
        "responses": 0,
    }


if __name__ == "__main__":
    json.dump({path: counts(path) for path in sys.argv[1:]}, sys.stdout, indent=1)
