"""Count the contents of Antigravity's transcripts, independently of agtrace (nothing is imported from it).

Usage: python antigravity_counts.py FILE...
Prints one JSON object: for each file `{records, tool_calls, failed, human_turns, responses, tokens}`, or null if the
file isn't a transcript. Transcripts have no tokens.
"""

import json
import re
import sys


def count(path):
    """Return the counts of a file."""
    with open(path, encoding="utf-8", errors="replace") as file:
        steps = [json.loads(line) for line in file if line.strip()]
    if not all("step_index" in step for step in steps):
        return None
    results = [s for s in steps if s["source"] == "MODEL" and s["type"] != "PLANNER_RESPONSE"]
    failed = [s for s in results if re.search(r"failed with exit code: [1-9-]", s.get("content", "")[:300])]
    asked = [s for s in steps if s["type"] == "USER_INPUT" and s["source"] == "USER_EXPLICIT"]
    return {
        "records": len(steps),
        "tool_calls": sum(len(s.get("tool_calls") or []) for s in steps),
        "failed": len({id(s) for s in failed + [s for s in results if s["status"] == "ERROR"]}),
        "human_turns": len(asked),
        "responses": 0,
        "tokens": [0, 0, 0, 0],
    }


if __name__ == "__main__":
    json.dump({path: count(path) for path in sys.argv[1:]}, sys.stdout)
