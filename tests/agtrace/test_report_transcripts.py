"""The conversations of the worst sessions within the page of `agtrace report --transcripts`."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from agtrace.conversation import html
from tests.agtrace.asking import claude_log
from tests.agtrace.terminal import agtrace_here, index_here

SECRET = "ghp_abcDEF0123456789ghijabcDEF0123456789ghij"
HOSTILE = "</template><script>window.__pwned=1</script><img src=https://example.com/x.png onerror=alert(1)>"


class _Talks(HTMLParser):
    """Collects the ids of sessions with a conversation, and every element within one."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions: list[str] = []
        self.elements: set[str] = set()
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "template":
            self._inside = True
            self.sessions.append(str(dict(attrs)["data-session"]))
        elif self._inside:
            self.elements.add(tag)

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "template"


def _page(path: Path, *options: str) -> str:
    assert agtrace_here("report", "--html", str(path / "page.html"), *options).code == 0
    return (path / "page.html").read_text(encoding="utf-8")


def _talks(page: str) -> _Talks:
    found = _Talks()
    found.feed(page)
    return found


@pytest.mark.thorough
def test_the_worst_sessions_have_their_conversation(indexed: Path, tmp_path: Path) -> None:
    made = agtrace_here("report", "--json").json()
    worst = [one["session_id"] for one in made["sessions"] if one.get("score") is not None]
    found = _talks(_page(tmp_path, "--transcripts"))
    assert found.sessions == worst[: html.MOST_CONVERSATIONS] != []
    assert _talks(_page(tmp_path)).sessions == []


def test_no_text_of_a_conversation_becomes_markup_and_secrets_are_masked(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "logs", "00000001-0000-4000-8000-000000000001")
    log.prompt(f"Look {HOSTILE}")
    log.call("Bash", {"command": HOSTILE}, f"{HOSTILE} {SECRET}", failed=True)
    log.write("assistant", [{"type": "text", "text": f"```\n{HOSTILE}\n```"}])
    index_here(tmp_path / "logs")
    page = _page(tmp_path, "--transcripts")
    found = _talks(page)
    assert len(found.sessions) == 1 and SECRET not in page
    assert found.elements <= {
        "section", "h2", "h3", "h4", "small", "div", "p", "pre", "details", "summary", "b", "bdi", "code", "span",
    }  # fmt: skip


def test_long_conversations_are_cut_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MOST_BYTES", 20_000)
    log = claude_log(tmp_path / "logs", "00000001-0000-4000-8000-000000000001")
    log.prompt("List it")
    for _ in range(10):
        log.call("Bash", {"command": "ls"}, "x" * 10_000)
    index_here(tmp_path / "logs")
    page = _page(tmp_path, "--transcripts")
    assert "... 6,000 more characters" in page and "the rest was left out to keep this file small" in page


def test_transcripts_need_a_page() -> None:
    said = agtrace_here("report", "--transcripts")
    assert said.code == 2 and "--html" in said.err
