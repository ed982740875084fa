"""The programs whose settings `agtrace setup` edits itself, whether or not their logs are read.

To add one, write its module and list it here. `client.py` says what it must hold; `json_text.py` and `yaml_text.py`
edit a text; `settings_file.py` reads and writes a file; `change.py` puts them together.
"""

from __future__ import annotations

from agtrace.upkeep.clients.antigravity import ANTIGRAVITY
from agtrace.upkeep.clients.claude_desktop import CLAUDE_DESKTOP
from agtrace.upkeep.clients.client import Client
from agtrace.upkeep.clients.copilot import COPILOT
from agtrace.upkeep.clients.cursor import CURSOR
from agtrace.upkeep.clients.goose import GOOSE
from agtrace.upkeep.clients.kilo import KILO
from agtrace.upkeep.clients.kiro import KIRO
from agtrace.upkeep.clients.opencode import OPENCODE
from agtrace.upkeep.clients.qwen import QWEN
from agtrace.upkeep.clients.vscode import VSCODE
from agtrace.upkeep.clients.zed import ZED

CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (
        CURSOR, VSCODE, CLAUDE_DESKTOP, COPILOT, OPENCODE, KILO, ZED, QWEN, KIRO, GOOSE, ANTIGRAVITY,
    )
}  # fmt: skip
"""The clients by the name that the user types."""
