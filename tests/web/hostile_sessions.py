"""Ten sessions whose texts try to run, to load, to leave the page, or to be too large for it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.agtrace.asking import ClaudeLog, claude_log

EVIL = "evil.example"
SECRET = "ghp_" + "abcDEF0123456789ghijabcDEF0123456789ghij"
LINES = 100_000
LINE = 3_000_000


class Session(NamedTuple):
    """A hostile session: its id, and what it tries."""

    id: str
    says: str


def _id(number: int) -> str:
    return f"bad{number:05x}-0000-4000-8000-0000000000{number:02x}"


SESSIONS = [
    Session(_id(number), says)
    for number, says in enumerate((
        "scripts in every text", "links to scripts and elsewhere", "images and other things to load",
        "styles that cover the page", "HTML in Markdown that ends its container", "hostile names of tools and files",
        "terminal escapes and changes of direction", "one huge line", "a result of many lines",
        "fences, entities and nesting without end",
    ))
]  # fmt: skip

_SCRIPT = "</script><script>window.__pwned=1</script><svg/onload=window.__pwned=2><img src=x onerror=window.__pwned=3>"
_LINKS = (
    "[run](javascript:window.__pwned=4) [data](data:text/html;base64,PHNjcmlwdD4=) [vb](vbscript:x) "
    f"<javascript:window.__pwned=5> [local](/s/last) [file](file:///etc/passwd) [page](https://{EVIL}/a?b=1&c=2) "
    f"[slashes](//{EVIL}/) [up](../..) [mixed](JaVaScRiPt:window.__pwned=6) [tab](java\tscript:window.__pwned=7) "
    f"[entity](&#106;avascript:window.__pwned=8) [title](https://{EVIL}/ \"x' onmouseover='window.__pwned=9\")\n\n"
    f"[ref]: javascript:window.__pwned=10\n\n[by reference][ref] <https://{EVIL}/auto> "
)
_IMAGES = (
    f"![track](http://{EVIL}/pixel.png) ![][again] <img src=//{EVIL}/x.png> <iframe src=//{EVIL}></iframe> "
    f"<link rel=stylesheet href=//{EVIL}/x.css> <object data=//{EVIL}> <video src=//{EVIL}> <audio src=//{EVIL}> "
    f"<base href=//{EVIL}/> <meta http-equiv=refresh content='0; url=//{EVIL}'> "
    f"<form action=//{EVIL}><input></form>\n\n"
    f"[again]: http://{EVIL}/again.png"
)
_STYLES = (
    f'<style>@import url(//{EVIL}/x.css); body{{display:none}}</style> <div style="position:fixed;inset:0;'
    f'background:url(//{EVIL}/bg.png)" class="skip top unseen" id="main">covered</div> {{color:red}}\n\n'
    "| a | b |\n|:-:|--:|\n| <b style=x> | `</td></table>` |\n"
)
_BREAKOUT = (
    "</div></section></main></pre></details></article><h1>agtrace</h1>\n\n"
    "```html\n</code></pre><script>window.__pwned=11</script>\n```\n\n"
    '```"><script>window.__pwned=12</script>\nx\n```\n\n<!-- \n\n<![CDATA[ ]]> <?php ?> &lt;script&gt; '
    "{{7*7}} {% raw %} ${7*7} <bdi> </bdi> </template>"
)
_TERMINAL = (
    f"\x1b[31mred\x1b[0m \x1b]8;;http://{EVIL}\x1b\\link\x1b]8;;\x1b\\ \x9b2J \u202egnp.exe\u2066 \u200b\u2060\ufeff"
    "\u2028next\u2029 \x07\x08 \U000e0041 a\u200db"
)
_DEEP = ">" * 400 + " deep\n\n" + "- " * 300 + "x\n\n" + "[" * 3000 + "\n\n" + "*_" * 3000 + "\n\n" + "`" * 2001 + "x"

TEXTS = (
    _SCRIPT, _LINKS, _IMAGES, _STYLES, _BREAKOUT, _SCRIPT + _LINKS, _TERMINAL, "", "", _DEEP,
)  # fmt: skip


def write(home: Path) -> None:
    """Write the ten sessions below a home."""
    for number, (session, text) in enumerate(zip(SESSIONS, TEXTS, strict=True)):
        log = claude_log(
            home / ".claude", session.id, cwd=f"/home/mira/{text[:60]}" if number == 5 else "/home/mira/tide"
        )
        _everywhere(log, f"{text or session.says} {SECRET}", number)
        if number == 7:
            log.say("x" * LINE).call("Bash", {"command": "y" * LINE}, "z" * LINE)
        if number == 8:
            log.call("Bash", {"command": "seq"}, "\n".join(f"line {n}" for n in range(LINES)))
        log.say("The end.")


def _everywhere(log: ClaudeLog, text: str, number: int) -> None:
    """Put a text wherever a session has one."""
    log.raw({"type": "summary", "summary": text[:150], "leafUuid": "0"})
    log.raw({"type": "custom-title", "customTitle": text[:150], "sessionId": log.session_id})
    log.prompt(text).write("assistant", [{"type": "thinking", "thinking": text, "signature": "s"}]).say(text)
    log.call("Bash", {"command": text, "description": text}, text)
    log.call("Bash", {"command": text}, f"Error: {text}", failed=True)
    log.call(
        "Edit", {"file_path": f"/home/mira/{text[:80]}.html", "old_string": text, "new_string": f"{text}\nmore"}, "ok"
    )
    log.call("Write", {"file_path": "/home/mira/a.html", "content": text}, text)
    name = text[:60] if number == 5 else "mcp__<b>tool"
    log.call(name, {text[:40]: text, "nested": [{"a": text}]}, text, failed=True)
    log.raw({"type": "system", "subtype": text[:40], "content": text, "uuid": f"{number}", "sessionId": log.session_id})
