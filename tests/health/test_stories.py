"""Everything in a story arrives in the index as intended, whichever agent's log it was written as."""

from __future__ import annotations

from pathlib import Path

import pytest
from agtrace_indexer.run import index
from agtrace_schema.events import Outcome, UserKind

from agtrace.health.history import History, Message, Notice, Thought, UserText, read_history
from agtrace.index.reader import Reader
from agtrace.sessions import prices, query
from agtrace.settings.model import Settings
from tests.health.evaluation import Rates
from tests.health.logs import write_logs
from tests.health.notation import StoryError, stories_of
from tests.health.stories import PROVIDERS
from tests.health.writing import NOW

EVERYWHERE = """\
=== everything that all three agents log
finds: returning_error
provider: PROVIDER
age: 2m

user: Mend the types in store.py,
| please.
think: The level may be missing.
say: I will look at it.
& read: store.py 10-50
  wait 7m
  ok: level: int = None
& grep: level
  failed: no such folder
edit: store.py
  - level: int = None
  + level: int | None = None
  ok: The file store.py has been updated.
write: notes.md
  + # Notes
  +
  + Nothing yet.
  failed: The disk is full.
run: mypy store.py
  wait 20s
  failed 2: mypy: can't read file 'store.py'
  | Is it there?
run: pytest -q
  failed: 1 failed
run: rm -r build
  refused
inject: Remember the style guide.
user: No, leave the folder there.
wait 5m
run: python serve.py
  interrupted
tokens: 300 in, 50000 cached, 800 out
say: The server runs.
run: cat report.txt
  ok: big 5000
tool ask_somebody {"question": "Who?", "options": ["you", "me"]}
api error: The service is overloaded.
repeat 2
say: Done {n}.
tokens: none
end
interrupt
"""


@pytest.fixture(scope="module", params=PROVIDERS)
def everything(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> History:
    return _history(tmp_path_factory.mktemp("story"), EVERYWHERE.replace("PROVIDER", request.param))


def test_an_execution_ends_as_its_story_says(everything: History) -> None:
    ends = [(call.outcome, call.exit_code) for call in everything.calls]
    shell_only = everything.provider != "codex"  # Codex searches, reads and patches with commands
    assert ends == [
        (Outcome.OK, None if shell_only else 0),
        (Outcome.FAILED, None if shell_only else 1),
        (Outcome.OK, None if shell_only else 0),
        (Outcome.FAILED, None if shell_only else 1),
        (Outcome.FAILED, 2),
        (Outcome.FAILED, 1),
        (Outcome.REJECTED, None),
        (Outcome.INTERRUPTED, 137 if everything.provider == "claude_code" else None),
        (Outcome.OK, 0 if everything.provider == "codex" else None),
        (Outcome.UNKNOWN, None) if everything.provider == "gemini" else (Outcome.INTERRUPTED, None),
    ]
    assert everything.calls[-1].result_event is None and everything.calls[-1].arguments == {
        "question": "Who?",
        "options": ["you", "me"],
    }


def test_what_came_back_is_there_word_for_word(everything: History) -> None:
    results = [call.result for call in everything.calls]
    assert "mypy: can't read file 'store.py'\nIs it there?" in results[4]
    assert "000001 gauge gauge reads 37 of 1\n" in results[8] and 5_000 <= everything.calls[8].result_chars < 5_200


def test_executions_of_one_response_share_a_step(everything: History) -> None:
    steps = [call.step for call in everything.calls]
    assert steps[0] == steps[1] and len(set(steps[1:7])) == 6
    thought, said = (next(e for e in everything.entries if isinstance(e, kind)) for kind in (Thought, Message))
    assert thought.step == said.step == steps[0]


def test_time_passes_as_the_story_tells(everything: History) -> None:
    """Two seconds a line, the result of a parallel call is no later for the one that takes long."""
    assert [call.duration_ms for call in everything.calls[:6]] == [420_000, 2_000, 2_000, 2_000, 20_000, 2_000]
    assert everything.calls[7].at - everything.requests[1].at == 300_000
    assert everything.entries[-1].at == round((NOW - 120) * 1000) and everything.at_work


def test_the_human_is_told_from_the_harness(everything: History) -> None:
    said = [(one.kind, one.text) for one in everything.said if one.kind is not UserKind.INTERRUPTION]
    assert said[0] == (UserKind.HUMAN, "Mend the types in store.py,\nplease.")
    assert said[1][0] is UserKind.INJECTED and "Remember the style guide." in said[1][1]
    assert said[2] == (UserKind.HUMAN, "No, leave the folder there.")
    assert everything.turns == 2 and [one.text for one in everything.messages[-2:]] == ["Done 1.", "Done 2."]


def test_a_failure_of_the_api_and_an_interruption_are_there(everything: History) -> None:
    told = [(one.kind, one.text) for one in everything.notices]
    assert ("api_error" if everything.provider == "claude_code" else "error", "The service is overloaded.") in told
    marks = {
        "claude_code": (UserText, UserKind.INTERRUPTION),
        "codex": (UserText, UserKind.INTERRUPTION),
        "gemini": (Notice, "info"),
    }
    last = everything.entries[-1]
    assert isinstance(last, (UserText, Notice)) and (type(last), last.kind) == marks[everything.provider]


def test_figures_are_the_given_ones_else_small_and_cached(everything: History) -> None:
    known = [one for one in everything.usages if one.whole_input is not None]
    figures = [(one.whole_input, one.cache_read_tokens, one.output_tokens) for one in known]
    assert figures[:3] == [(900, 0, 40), (910, 900, 40), (920, 910, 40)]
    assert figures[-4:] == [(50_300, 50_000, 800), (50_310, 50_300, 40), (50_320, 50_310, 40), (50_330, 50_320, 40)]


def test_files_that_are_read_and_written_are_known(everything: History) -> None:
    written = [call.writes for call in everything.calls[2:4]]
    assert [path[0].endswith(name) for path, name in zip(written, ("store.py", "notes.md"), strict=True)] == [True] * 2
    if everything.provider != "codex":
        assert everything.calls[0].reads == ("/home/mira/projects/tidepool/store.py",)


def test_claude_code_tells_retries_commands_and_who_compacted(tmp_path: Path) -> None:
    history = _history(
        tmp_path,
        "=== a long day\nfinds: nothing\n\ncommand: /compact\ncompaction: manual\nuser: Go on.\nretry: Overloaded\n"
        "run: ls\n  ok: a\ntokens: 5 in, 40 cached, 300 written, 7 out\ncompaction: auto\nsay: Done.\n",
    )
    assert [one.kind for one in history.notices] == [
        "system/compact_boundary",
        "system/api_error",
        "system/compact_boundary",
    ]
    assert ["manual" in one.text or "auto" in one.text for one in history.notices] == [True, False, True]
    assert '"auto"' in history.notices[2].text and '"manual"' in history.notices[0].text
    assert [one.kind for one in history.said] == [
        UserKind.COMMAND, UserKind.COMPACTION_SUMMARY, UserKind.HUMAN, UserKind.COMPACTION_SUMMARY,
    ]  # fmt: skip
    one, two = history.usages
    assert (one.input_tokens, one.cache_read_tokens, one.cache_creation_tokens) == (5, 40, 300)
    assert two.whole_input == 900 and two.cache_read_tokens == 0 and two.model == "claude-opus-4-5"


def test_codex_tells_compactions_windows_and_mcp_tools(tmp_path: Path) -> None:
    history = _history(
        tmp_path,
        "=== a long day\nfinds: nothing\nprovider: codex\nwindow: 1000\nmodel: gpt-5\n\nuser: Go on.\n"
        'tool mcp__tides__read {"pier": 3}\n  failed: no such pier\ncompaction: auto\ntool view {}\n  ok: seen\n'
        "& run: sleep 9\n  ok: Process running with session ID 41\n  | tick\nsay: Done.\n",
    )
    assert [(call.tool, call.outcome) for call in history.calls] == [
        ("mcp__tides__read", Outcome.FAILED), ("view", Outcome.UNKNOWN), ("exec_command", Outcome.RUNNING),
    ]  # fmt: skip
    assert [one.kind for one in history.notices if one.kind == "compacted"] == ["compacted"]
    assert [(one.context_window, one.model, one.whole_input) for one in history.usages][:2] == [
        (1000, "gpt-5", 900), (1000, "gpt-5", 900),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("finds: everything\n\nuser: Go.\n", "2: no detector is called 'everything'"),
        ("provider: codex\n\nuser: Go.\n", "1: a story needs the header `finds:`"),
        ("finds: nothing\nmood: good\n\nuser: Go.\n", "3: not a header: 'mood: good'"),
        ("finds: nothing\n\nshout: Go!\n", "4: not a line: 'shout: Go!'"),
        ("finds: nothing\n\nrun: ls\n  fine: a\n", "5: not a result: 'fine: a'"),
        ("finds: nothing\n\nsay: Hello\n  ok: a\n", "5: only executions have lines below them"),
        ("finds: nothing\n\nrun: ls\n  ok: a\n  ok: b\n", "6: the execution has ended already"),
        ("finds: nothing\n\nuser: Go.\n& run: ls\n", "5: `& ` joins an execution to the response before it"),
        ("finds: nothing\n\nuser: Go.\ntokens: 5 in\n", "5: token usage must follow a response"),
        ("finds: nothing\n\nuser: Go.\nwait a bit\n", "5: not a time: 'a bit'"),
        ("finds: nothing\n\nrepeat 3\nsay: Again.\n", "4: `repeat` without an `end`"),
        ("finds: nothing\n\ntool X {oops}\n", "4: not JSON"),
        ("finds: nothing\nprovider: codex\n\nretry: Overloaded\n", "5: Codex doesn't log"),
        ("finds: nothing\nprovider: gemini\n\ncompaction: auto\n", "5: Gemini CLI's log doesn't record"),
        ("finds: nothing\n\n", "1: nothing happens in this story"),
    ],
)
def test_what_is_not_understood_is_named_with_its_line(tmp_path: Path, lines: str, message: str) -> None:
    with pytest.raises(StoryError) as error:
        _history(tmp_path, f"=== a story\n{lines}")
    assert str(error.value).startswith(f"returning_error.sessions:{message}")


def test_precision_counts_what_is_too_much_and_recall_what_is_missing() -> None:
    rates = Rates(right=18, too_much=2, missing=6)
    assert (rates.precision, rates.recall, rates.good) == (0.9, 0.75, False)


def _history(folder: Path, text: str) -> History:
    path = folder / "returning_error.sessions"
    path.write_text(text, "utf-8")
    [uid] = write_logs(folder / "logs", stories_of(path, ["returning_error"]))
    settings = Settings(data_dir=folder / "index", environment={})
    index(settings.database, [str(folder / "logs")])
    connection = Reader(settings).connection
    return read_history(connection, query.find_session(connection, uid), now=NOW, prices=prices.load(None))
