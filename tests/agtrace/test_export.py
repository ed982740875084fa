"""`agtrace export`: a conversation to pass on, complete, without secrets, and harmless whatever is in its log."""

from __future__ import annotations

import json
import re
import stat
import tracemalloc
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from random import Random

import pytest
from agtrace_indexer.index.opening import open_read_only
from agtrace_indexer.index.queries import sessions
from agtrace_schema.events import EventType, Outcome

from agtrace.conversation.cleaning import Cleaner
from agtrace.conversation.export import ExportOptions, Form, export
from agtrace.conversation.html import View, markup
from agtrace.conversation.items import Answer, Call, Turn
from agtrace.conversation.markdown import code, fenced, harmless, quoted
from agtrace.sessions.prices import load as prices
from agtrace.settings import load
from tests.agtrace.asking import claude_log
from tests.agtrace.terminal import Said, agtrace_here, index_here
from tests.depth import depth, part
from tests.hostile import unclosed_line
from tests.safety.planting import CONTROL, HOSTILE, MARK, planted

ONE = "6d1c2b3a-0000-4000-8000-000000000001"
SECRET = "ghp_abcDEF0123456789ghij" + "abcDEF0123456789ghij"
FORMS = ("--markdown", "--html", "--jsonl")
BREAKING = (
    "</details></section><script>alert(1)</script><img src=x onerror=alert(1)>\n```\n~~~~\n``````\n"
    "## Turn 99\n![i](http://evil.example/i.png) [c](javascript:alert(1)) <!-- \x1b[31mred \u202egnp.exe {{ 7*7 }}"
)


def exported(*options: str | Path) -> Said:
    told = agtrace_here("export", *options)
    assert told.code == 0, told.err
    return told


def written(tmp_path: Path) -> None:
    """A session with a request, thinking, a message, calls that succeed and fail, and secrets."""
    log = claude_log(tmp_path / "home", ONE, cwd="/home/mira/projects/tidepool")
    log.prompt(f"Draw the tide with {SECRET}.")
    thought = {"type": "thinking", "thinking": "First the moon.", "signature": "x"}
    log.write("assistant", [thought, {"type": "text", "text": "**Drawing** it in `<svg>`:\n\n```html\n<svg/>\n```"}])
    log.call("Bash", {"command": "make tide", "description": "Draws\nit"}, "\n".join(f"wave {n}" for n in range(20)))
    log.call("Bash", {"command": "pytest /home/mira/projects/x"}, f"ok\nFAILED t.py::test_a - x\n{SECRET}", failed=True)
    log.prompt("[Request interrupted by user]")
    log.prompt("And the ebb?").say("Done.")
    index_here(tmp_path / "home")


# -- what it says ----------------------------------------------------------------------------------


def test_markdown_tells_the_conversation_with_calls_on_a_line_and_counts_what_it_leaves_out(tmp_path: Path) -> None:
    written(tmp_path)
    text = exported(ONE[:8]).out
    assert "- **Masked:** 2 secrets: 2 GitHub tokens\n" in text and SECRET not in text
    assert "- **Agent:** Claude Code" in text and "- **Folder:** `~/projects/tidepool`" in text
    assert "> **Drawing** it in `<svg>`:\n>\n> ```html\n> <svg/>\n> ```" in text
    assert "`Bash` `make tide`: ok" in text and "wave 5\n" in text and "wave 6" not in text
    assert "*14 more lines of the result and 3 lines of arguments left out*" in text
    assert "`Bash` `pytest ~/projects/x`: failed" in text and "Error: `FAILED t.py::test_a - x`" in text
    assert "The user interrupted the model" in text and "First the moon." not in text and "1 thought" in text


def test_markdown_has_thinking_and_whole_calls_if_wanted(tmp_path: Path) -> None:
    written(tmp_path)
    text = exported(ONE[:8], "--thinking", "--tools").out
    assert "**Thinking**\n\n> First the moon." in text and "wave 19\n" in text and "description:\nDraws\nit" in text
    assert "left out" not in text.lower()


def test_a_page_folds_thinking_and_calls_and_says_what_was_masked(tmp_path: Path) -> None:
    written(tmp_path)
    page = exported(ONE[:8], "--html").out
    assert SECRET not in page and "2 secrets: 2 GitHub tokens" in page
    assert re.search(r"<summary><span>Thinking</span></summary><div class=\"text\" dir=\"auto\">First the moon.", page)
    assert '<details class="entry call failed">' in page and "wave 19" in page
    assert "<strong>Drawing</strong> it in <code>&lt;svg&gt;</code>" in page
    assert "/home/mira" not in page


def test_json_lines_are_the_events_in_the_words_of_the_schema(tmp_path: Path) -> None:
    written(tmp_path)
    text = exported(ONE[:8], "--jsonl").out
    events = [json.loads(line) for line in text.splitlines()]
    assert [event["event_index"] for event in events] == sorted({event["event_index"] for event in events})
    assert {event["event_type"] for event in events} <= set(EventType) and SECRET not in text
    call = next(event for event in events if event["event_type"] == "ToolCall")
    assert call["payload"]["arguments"]["command"] == "make tide" and call["outcome"] == "ok"
    assert next(e for e in events if e.get("call_event") == call["event_index"])["payload"]["text"][:6] == "wave 0"


def test_turns_are_chosen_as_elsewhere_and_ones_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", ONE)
    for number in range(4):
        log.prompt(f"request {number}").say(f"answer {number}")
    index_here(tmp_path / "home")
    for form in FORMS:
        text = exported("last", form, "--turns", "1:2").out
        body = text.replace("<title>request 0</title>", "").replace("<bdi>request 0</bdi>", "")
        body = body.replace("# request 0\n", "")
        assert [number for number in range(4) if f"request {number}" in body] == [1, 2]
    assert "request 3" in exported("last", "--turns", "2:").out
    wrong = agtrace_here("export", "last", "--turns", "3:9")
    assert (wrong.code, wrong.out) == (2, "") and "out of bounds" in wrong.err
    assert agtrace_here("export", "last", "--turns", "2:1").code == 2


def test_a_sub_agent_is_named_by_its_id_and_compactions_are_lines(indexed: Path) -> None:
    assert re.search(r": ok, [\d.]+ s, sub-agent `agent-\w+`\n", exported("8c0d35f1").out)
    assert "*The conversation was compacted*" in exported("d41f7a52").out


def test_a_failure_says_why_and_a_command_is_what_was_typed(indexed: Path) -> None:
    assert "Error: `ModuleNotFoundError: No module named 'lanternfish.render'`" in exported("8c0d35f1").out
    assert "**Command**\n\n> /model opus\n" in exported("e97a4b06").out


# -- where it is written ---------------------------------------------------------------------------


def test_a_file_is_for_its_owner_only_whole_and_never_in_place_of_another(tmp_path: Path) -> None:
    written(tmp_path)
    out = tmp_path / "told.html"
    told = exported(ONE[:8], "--html", "--out", out)
    assert told.out == "" and f"written to {out}" in told.err and "masked: 2 secrets: 2 GitHub tokens" in told.err
    assert stat.S_IMODE(out.stat().st_mode) == 0o600 and out.read_text().endswith("</html>\n")
    out.write_text("mine")
    again = agtrace_here("export", ONE[:8], "--html", "--out", out)
    assert again.code == 2 and "--force" in again.err and out.read_text() == "mine"
    exported(ONE[:8], "--html", "--out", out, "--force")
    assert out.read_text().endswith("</html>\n") and sorted(p.name for p in tmp_path.glob("*told*")) == ["told.html"]
    assert agtrace_here("export", ONE[:8], "--out", tmp_path / "none" / "x.md").code == 2


# -- what no log can do ----------------------------------------------------------------------------


class Elements(HTMLParser):
    """Collects the elements of a page, their attributes and comments, and checks that they are closed in order."""

    EMPTY = frozenset({"meta", "link"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
        self.open: list[str] = []
        self.comments = 0
        self.feed(page)
        self.close()
        assert self.open == [] and not self.comments

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add((tag, tuple((name, value or "") for name, value in attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.comments += 1


OURS = {
    "html": {"lang": "en"}, "head": {}, "title": {}, "style": {}, "body": {}, "header": {}, "h1": {}, "bdi": {},
    "dl": {}, "div": {"class": "text|prose|body|part|scrolls", "dir": "auto"}, "dt": {}, "dd": {}, "main": {}, "h3": {},
    "h4": {"dir": "auto"}, "h5": {"dir": "auto"}, "h6": {"dir": "auto"}, "pre": {"class": "block", "tabindex": "0"},
    "em": {}, "strong": {}, "s": {}, "br": {}, "hr": {}, "blockquote": {}, "ul": {}, "ol": {"start": r"\d+"},
    "li": {"dir": "auto"}, "table": {}, "thead": {}, "tbody": {}, "tr": {}, "th": {}, "td": {}, "mark": {},
    "section": {"class": "entry (request|answer( goes-on)?)", "aria-label": "[A-Za-z][A-Za-z -]*"},
    "h2": {"class": "turn", "id": r"turn-\d+"},
    "a": {"href": r"#turn-\d+|https?://.*", "target": "_blank", "rel": "noopener noreferrer nofollow"},
    "small": {}, "p": {"class": "mark entry|none|started", "dir": "auto"}, "summary": {}, "b": {},
    "details": {"class": "entry (folded thought|call (ok|failed|rejected|interrupted|running|unknown)( edit)?)"},
    "code": {"class": "said"}, "footer": {},
    "span": {"class": "unseen|outcome|took|changed|error|leads|image|add|del|hunk|[cksnfb]"},
    "link": {"rel": "icon", "href": "data:,"}, "meta": {"charset": "utf-8", "http-equiv": ".*", "name": ".*",
                                                      "content": ".*"},
}  # fmt: skip
"""Every element of the page, with its attributes and their values."""


def check_page(page: str) -> None:
    """Check that all elements and attributes are ours, and that nothing is fetched or run."""
    for tag, attributes in Elements(page).found:
        for name, value in attributes:
            assert tag in OURS and re.fullmatch(OURS[tag].get(name, "(?!)"), value), (tag, name, value)
        assert tag in OURS, tag
    head, _, body = page.partition("</head>")
    assert "default-src &#39;none&#39;" in head and "<script" not in page and "url(" not in head
    assert not CONTROL.search(page)
    assert len(re.findall("<meta", page)) == 6 and "<meta" not in body


def check_markdown(text: str) -> None:
    """Check that all that isn't in a quote or a block of code is ours, and what is in a quote is harmless."""
    assert not CONTROL.search(text)
    outside, fence = [], ""
    for line in text.splitlines():
        if fence:
            fence = "" if line == fence else fence
        elif line.startswith("```"):
            fence = line.removesuffix("text")
            assert line == f"{fence}text"
        elif not line.startswith(">"):
            outside.append(line)
    assert not fence
    known = re.compile(
        r"|# .*|- \*\*\w[\w ]*:\*\* .*|## Turn \d+( · [\d :-]+ UTC)?( · copied)?|\*\*[\w ]+\*\*"
        r"|`.*: \w+(, .*)?|Error: `.*`|\*.*\*|---"
    )
    assert [line for line in outside if not known.fullmatch(line)] == []
    assert not any(re.search(r"(?<!\\)<[a-z/!]", re.sub("(`+)(?!`).*?(?<!`)\\1(?!`)", "", line)) for line in outside)


def test_hostile_texts_end_nothing_in_any_form(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", ONE)
    for text in (
        BREAKING,
        HOSTILE,
        f"```\n{BREAKING}",
        f"- ```\n{BREAKING}",
        f"   ```\n{BREAKING}",
        "`" * 4000 + BREAKING,
    ):
        log.prompt(text).say(text).call(f"Ba`sh</b>{MARK}", {"command": text, text: [text]}, text, failed=True)
        log.write("assistant", [{"type": "thinking", "thinking": text, "signature": "x"}])
    index_here(tmp_path / "home")
    check_page(exported(ONE, "--html").out)
    for options in ((), ("--tools", "--thinking")):
        check_markdown(exported(ONE, *options).out)
    events = exported(ONE, "--jsonl").out
    assert not CONTROL.search(events) and all(map(json.loads, events.splitlines()))


@pytest.mark.thorough
def test_no_text_anywhere_in_a_log_does_harm(tmp_path: Path) -> None:
    planted(tmp_path / "planted")
    index_here(tmp_path / "planted")
    items = agtrace_here("sessions", "--json", "--limit", "50").json()["data"]["sessions"]
    assert len(items) > 10
    for item in part(items, 0, 3):
        check_page(exported(item["id"], "--html").out)
        check_markdown(exported(item["id"], "--tools", "--thinking").out)
        assert not CONTROL.search(exported(item["id"], "--jsonl").out)


@pytest.mark.thorough
def test_endless_lines_are_shortened_in_markdown_and_whole_on_a_page(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", ONE)
    log.prompt("x" * 1_000_000).call("Bash", {"command": "y" * 1_000_000}, "z" * 1_000_000)
    unclosed_line(log.path.parent)
    index_here(tmp_path / "home")
    assert len(re.findall("z+", exported(ONE).out)[-1]) < 300
    assert "z" * 1_000_000 in exported(ONE, "--html").out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a <b> `<b>` <!-- x", "a &lt;b> `<b>` &lt;!-- x"),
        ("1 < 2 and a[1](x)", "1 < 2 and a[1](x)"),
        ("a ` b\n` <b> `", "a ` b\n` &lt;b> `"),
        ("| ` | <b> | ` |", "| ` | &lt;b> | ` |"),
        ("```| a |\n|---|---|\n<b>", "```| a |\n|---|---|\n&lt;b>"),
        (r"\`<b>`", r"\`&lt;b>`"),
        ("```\n<b>\n```\n<b>", "```\n<b>\n```\n&lt;b>"),
        ("````\n```\n<b>\n````\n<b>", "````\n```\n<b>\n````\n&lt;b>"),
        ("1. x\n   ```\n   <b>\n   ```\n<b>", "1. x\n   ```\n   <b>\n   ```\n&lt;b>"),
        ("1. x\n   ```\n<b>\n```\n<b>", "1. x\n   ```\n&lt;b>\n```\n&lt;b>"),
        ("- ```\n<b>", "- ```\n&lt;b>"),
        ("text\n    ```\n    <b>", "text\n    ```\n    &lt;b>"),
        ("- a\n   ```\n      ```\n<b>\n```\n<b>", "- a\n   ```\n      ```\n&lt;b>\n```\n&lt;b>"),
        ("![i](http://x/i.png)", "!&#91;i](http://x/i.png)"),
        ("[c](javascript:x) [d](https://x.y) [e](docs/a.md)", "[c]&#40;javascript:x) [d](https://x.y) [e](docs/a.md)"),
        ("[c]( javascript:x) [c](\njavascript:x)", "[c]&#40; javascript:x) [c]&#40;\njavascript:x)"),
        ("[a]: javascript:x", "[a]&#58; javascript:x"),
    ],
)
def test_markdown_of_a_log_stays_as_it_is_except_for_what_would_act(text: str, shown: str) -> None:
    assert harmless(text) == shown


PARTS = (
    "<b>", "<!-- ", "`", "``", "```", "```", "~~~", "````", "\n", "\n", "\n", "\n\n", " ", "  ", "   ", "    ",
    "- ", "1. ", "> ", "| - |\n", "a", "\\", "![i](http://e/i)", "[c](javascript:x)", "[a]: javascript:x", "[a]",
    "](", "!", "[x]", "\t", "# ", "---", "<", "/b>", "* ", "](\njavascript:x)", "|---|---|\n", "| a | b |\n",
)  # fmt: skip


def test_a_renderer_of_markdown_finds_nothing_that_acts_and_an_end_where_the_quote_ends() -> None:
    markdown_it = pytest.importorskip("markdown_it", reason="it comes with rich")
    renderer = markdown_it.MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    renderer.validateLink = lambda url: True
    random = Random(7)
    for _ in range(1_500):
        text = "".join(random.choices(PARTS, k=random.randint(2, 16)))
        tokens = renderer.parse(f"{quoted(text)}\n\noutside\n")
        every = tokens + [child for token in tokens for child in token.children or ()]
        assert not {token.type for token in every} & {"html_block", "html_inline", "image"}, text
        assert not any("javascript" in str(token.attrs) for token in every if token.type == "link_open"), text
        assert sum(token.type == "paragraph_open" and not token.level for token in tokens) == 1, text


def test_code_is_held_by_more_backticks_than_it_has() -> None:
    assert fenced("a\n```\n`````") == "``````text\na\n```\n`````\n``````"
    assert (code("a ` b"), code("`a`"), code("a"), code("")) == ("``a ` b``", "`` `a` ``", "`a`", "")
    assert quoted("a\n\n# b\n") == "> a\n>\n> # b"


def test_markdown_shows_what_a_call_changed_and_counts_the_rest(tmp_path: Path) -> None:
    log = claude_log(tmp_path / "home", ONE)
    log.prompt("Mend it.")
    edit = {"file_path": "a.py", "old_string": "one\ntwo\n", "new_string": "one\nthree\n", "replace_all": True}
    log.call("Edit", edit, "The file was updated.\nNothing else.")
    log.call("Write", {"file_path": "b.py", "content": "x\ny"}, "written")
    log.call("Edit", {"file_path": "a.py", "old_string": "", "new_string": "z\n" * 50}, "updated")
    index_here(tmp_path / "home")
    text = exported(ONE[:8]).out
    assert "\n```diff\n one\n-two\n+three\n```\n\n*2 lines of the result and 1 line of arguments left out*\n" in text
    assert "*11 more lines of the change and 1 line of the result left out*" in text


def test_a_page_sets_what_the_model_wrote_as_markdown_and_what_it_changed_as_a_difference() -> None:
    edit = {"file_path": "a.py", "old_string": "one\ntwo", "new_string": "one\nthree <b>"}
    call = Call(3, 0, "Edit", "a.py", Outcome.OK, 5, None, edit, "done", None, None, None, False, 4)
    items = [
        Turn(1, 0, 0, False),
        Answer(2, 0, "**Done**\n\n```py\nx = 1\n```\n\n<b>[a](javascript:x) [b](https://b.example)"),
        call,
    ]
    page = "".join(markup(View("Codex"), items))
    assert "<strong>Done</strong>" in page and '<pre class="block"><code>x' in page
    assert "&lt;b&gt;" in page and "javascript" in page and 'href="javascript' not in page
    assert '<a href="https://b.example" target="_blank" rel="noopener noreferrer nofollow">' in page
    assert '<span class="del">-two</span>\n<span class="add">+three &lt;b&gt;</span>' in page


# -- secrets and homes -----------------------------------------------------------------------------


HOMES = ["/home/mira", r"C:\Users\mira", "/", None]


@pytest.mark.parametrize(
    ("homes", "text", "shown"),
    [
        (HOMES, "see /home/mira/a.py", "see ~/a.py"),
        (HOMES, "cd /home/mira", "cd ~"),
        (HOMES, "file:///home/mira/x", "file://~/x"),
        (HOMES, "/home/miranda/x /mnt/home/mira/x /home/mira.bak", "/home/miranda/x /mnt/home/mira/x /home/mira.bak"),
        (HOMES, "~/.claude/projects/-home-mira-tidepool/a", "~/.claude/projects/-~-tidepool/a"),
        (HOMES, r"C:\Users\mira\a and C:\\Users\\mira\\a", r"~\a and ~\\a"),
        ([], r"$scratch = 'C:\Users\jande\AppData\x'; cd", r"$scratch = '~\AppData\x'; cd"),
        ([], r'{"path": "D:\\Users\\Jan De\\x"}', r'{"path": "~\\x"}'),
        ([], r"C:\Users\jande is mine", "~ is mine"),
        ([], "at /Users/soph/a.py:3 and /home/u", "at ~/a.py:3 and ~"),
        ([], "~/.claude/projects/-Users-soph-tidepool/a", "~/.claude/projects/-~-tidepool/a"),
        ([], "https://x.org/home/a, the-home-page, /srv/home/a", "https://x.org/home/a, the-home-page, /srv/home/a"),
    ],
)  # fmt: skip
def test_paths_in_a_home_begin_with_a_tilde_and_what_is_passed_on_names_nobody_s(
    homes: list[str | None], text: str, shown: str
) -> None:
    assert Cleaner(homes, of_anybody=not homes).text(text) == shown


# -- long sessions ---------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_long_session_is_written_in_little_memory(tmp_path: Path) -> None:
    """Of megabytes of results, a few are in memory at a time; what the head needs to know of each call is small."""
    log = claude_log(tmp_path / "home", ONE)
    log.prompt("Count.")
    for number in range(depth(500, 1_000)):
        log.call("Bash", {"command": f"seq {number}"}, f"{number} ".ljust(10_000, "x"))
    index_here(tmp_path / "home")
    with closing(open_read_only(load().database)) as connection:
        session = sessions.with_id(connection, ONE)
        assert session is not None
        tracemalloc.start()
        try:
            told = export(connection, session, ExportOptions(Form.HTML), home="/", now=0, prices=prices(None))
            size = sum(map(len, told.pieces))
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert most < depth(5_000_000, 8_000_000) < size
