"""What the pages show: the same sessions, events, hits and sums as the command line and the MCP server."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from agtrace.answers.service import Service
from agtrace.settings.model import Settings
from tests.agtrace.asking import best_in, claude_log
from tests.agtrace.live_logs import Claude
from tests.agtrace.test_show import ONE, SECRET, TWO, refused, with_sub_agent
from tests.web.opening import AGTRACE, Site, opened, until

LARGE = "d41f7a52"
REVIEW = "11ee0000-0000-4000-8000-000000000002"


def command(site: Site, *arguments: str) -> Any:
    """What a command prints as JSON on the same machine."""
    made = [AGTRACE, *arguments, "--json"]
    return json.loads(subprocess.run(made, env=site.environment, capture_output=True, check=True).stdout)


@cache
def service(folder: str) -> Service:
    """What answers over MCP on the same machine, with the index as it is."""
    settings = Settings(data_dir=Path(folder), cursor_ttl_seconds=3600, environment={"HOME": f"{folder}/nobody"})
    return Service(settings, log=lambda record: None)


def told(site: Site, tool: str, **arguments: Any) -> Any:
    """What a tool answers."""
    answer = service(site.environment["AGTRACE_DATA_DIR"]).ask(tool, arguments)
    assert not answer.is_error, answer.text
    return answer.value


def ids(page: str) -> list[str]:
    """The sessions in a list, in order."""
    return re.findall(r'<tr role="row" data-id="([^"]+)"', page)


def places(page: str) -> list[tuple[str, int]]:
    """The events that a page of hits links to, in order."""
    return [(session, int(event)) for session, event in re.findall(r'href="/s/([^/"?]+)\?at=(\d+)#e\2"', page)]


def events(page: str) -> list[int]:
    """The events that have a place in a page, in order."""
    return [int(event) for event in re.findall(r' id="e(\d+)"', page)]


# -- heads ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, compiled_rules: Path) -> Iterator[Site]:
    """A server over small sessions, in each of which something else happened."""
    home = tmp_path_factory.mktemp("small") / "home"
    with_sub_agent(home / ".claude")
    refused(home / ".claude", TWO)
    for number, said in ((1, "Shall I drop the table, or keep it?"), (2, "Done.")):
        log = Claude(home, number, ago=7200)
        log.asked(f"Mend table {number}.")
        log.says(said)
    typed = "<command-message>review is running</command-message>\n<command-name>/review</command-name>"
    review = claude_log(home / ".claude", REVIEW).prompt(typed).write("user", "Look at the diff.", isMeta=True)
    review.say("Two files changed.").prompt("And now?").say("Ok.")
    with opened(home, compiled_rules, logs=home / ".claude") as found:
        yield found


def test_a_head_tells_cost_tokens_and_failures_alone_and_with_sub_agents(small: Site) -> None:
    head = re.sub(r"<[^>]+>", "", unescape(small.page(f"/s/{ONE[:8]}")))
    assert "Failed 0 of 1 call, with 1 sub-agent 2 of 4" in head
    assert re.search(r"Tokens (≥\s)?100k, with 1 sub-agent (≥\s)?150k", head)
    assert re.search(r"Cost (≥\s)?\$0\.50, with 1 sub-agent (≥\s)?\$0\.75", head)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            {"stop_reason": None},
            "token figures of some responses are missing, incomplete or not understood in the logs",
        ),
        ({"model": "tern-9"}, "some responses have no known price"),
    ],
)
def test_what_is_at_least_so_much_says_why_and_the_costs_tell_what_the_logs_lack(
    given: dict[str, Any], reason: str, tmp_path: Path, compiled_rules: Path
) -> None:
    claude_log(tmp_path / "logs", ONE).prompt("Measure.").used(100_000, 1, id="msg_1").used(50_000, 1, **given)
    lacks_figures = "stop_reason" in given
    with opened(tmp_path / "home", compiled_rules, logs=tmp_path / "logs") as site:
        for path in ("/", f"/s/{ONE[:8]}", "/costs", "/projects"):
            page = site.page(path)
            assert set(re.findall(r'title="at least: ([^"]+)"', page)) == {reason}, path
            assert bool(re.search(r"≥&#8239;</span>150k", page)) is (lacks_figures and path != "/projects"), path
        assert ("Incomplete token figures in the logs: 1 response." in site.page("/costs")) is lacks_figures


def test_what_the_human_said_when_refusing_a_call_stands_below_it(small: Site) -> None:
    (objection,) = re.findall(r'class="objection" dir="auto">([^<]+)<', small.page(f"/s/{TWO}"))
    assert objection.startswith("not this one:\nthe branch with ") and SECRET not in objection


# -- lists -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "arguments"),
    [
        ("sort=newest", {}),
        ("sort=oldest&kind=all", {"sort": "oldest", "kind": "all"}),
        ("sort=failed_calls&failures=1", {"sort": "failed_calls", "has_failures": True}),
        ("sort=cost&agent=codex", {"sort": "cost", "provider": "codex"}),
        ("sort=newest&project=lanternfish", {"project": "lanternfish"}),
        ("sort=newest&query=flaky", {"query": "flaky"}),
        ("sort=newest&since=2026-10-01&until=2026-10-31", {"since": "2026-10-01", "until": "2026-10-31"}),
        ("sort=duration&kind=subagent", {"sort": "duration", "kind": "subagent"}),
    ],
)
def test_the_list_is_that_of_the_tool(site: Site, query: str, arguments: dict[str, Any]) -> None:
    listed = told(site, "list_sessions", limit=50, **{"kind": "main", **arguments})["data"]["sessions"]
    assert ids(site.page(f"/?{query}")) == [session["id"] for session in listed] != []


def test_by_default_the_session_in_which_something_happened_last_comes_first(site: Site) -> None:
    page = site.page("/")
    assert f'data-id="{ids(page)[0]}"' in site.page("/s/last") and len(ids(page)) > 10
    assert sorted(ids(page)) == sorted(ids(site.page("/?sort=oldest")))


def test_a_session_that_asked_something_says_so_in_the_list(small: Site) -> None:
    rows = dict(re.findall(r'<tr role="row" data-id="(\w+)">(.*?)</tr>', small.page("/"), re.DOTALL))
    assert ["asks you" in rows[f"{number:08x}"] for number in (1, 2)] == [True, False]


@pytest.mark.thorough
def test_pages_of_a_list_are_disjoint_and_complete(own_home: Path, compiled_rules: Path) -> None:
    for number in range(120):
        claude_log(own_home / ".claude", f"{number:08x}-0000-4000-8000-000000000001").prompt(f"Number {number % 7}")
    with opened(own_home, compiled_rules, logs=own_home) as site:
        for sort in ("active", "newest", "oldest", "turns", "cost"):
            found: list[str] = []
            path = f"/?sort={sort}"
            while path:
                page = site.page(path)
                assert len(ids(page)) <= 50
                found += ids(page)
                following = re.search(r'data-more="([^"]+)"', page)
                path = unescape(following[1]) if following else ""
            assert len(found) == len(set(found)) == 120


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("agent=nobody", "gent: expected one of"),
        ("sort=x", "ort: expected one of"),
        ("since=never", "ince: expected"),
        ("project=nothing", "o project matches"),
        ("after=1-2", "fter: not a place"),
    ],
)
def test_a_filter_that_can_not_be_meant_is_told_what_is_allowed(site: Site, query: str, says: str) -> None:
    answer = site.client.get(f"/?{query}")
    assert answer.status_code == 400 and says in unescape(answer.text)


@pytest.mark.thorough
def test_projects_and_costs_are_those_of_the_commands(site: Site) -> None:
    projects = told(site, "get_project_info")["data"]["projects"]
    page = site.page("/projects")
    assert all(f"<bdi>{project['name']}</bdi>" in page for project in projects) and len(projects) > 1
    for by in ("week", "project", "model"):
        costs = command(site, "cost", "--by", by)
        page = site.page(f"/costs?by={by}")
        assert page.count('<tr><th scope="row">') == len(costs["groups"])
        dollars = f"${costs['total']['cost_usd']:.2f}"
        assert dollars in page


@pytest.mark.thorough
def test_without_dollars_no_page_has_any(site: Site) -> None:
    server = subprocess.Popen(
        [AGTRACE, "open", "--no-browser", "--no-dollars"], env=site.environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        link = server.stdout.readline().strip()
        with site.stranger() as client:
            client.base_url = link.partition("/enter")[0]
            client.get(link)
            pages = [client.get(path).text for path in ("/", "/costs", "/projects", f"/s/{LARGE}")]
            health = client.get(f"/s/{LARGE}/health").json()
        assert all("$" not in page.partition('id="facts"')[0].partition("<dialog")[0] for page in pages[:3])
        assert "Cost" not in pages[3].partition('id="conversation"')[0]
        assert health["row"]["cost"] is None
    finally:
        server.kill()
        server.communicate()


# -- search ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["database is locked", "flaky tide test", "wheel missing package", "WAL"])
def test_the_best_hits_are_those_of_the_command_each_quoted_and_linked(site: Site, query: str) -> None:
    best = best_in(told(site, "search_event_previews", query=query))
    page = site.client.get("/found", params={"q": query}).text
    assert places(page) == [(one["session_id"], hit[0]) for one in best["sessions"] for hit in one["hits"]] != []
    assert all(unescape(page).count(hit[2]) for one in best["sessions"] for hit in one["hits"])
    assert all(f'href="/s/{id}"' in page for id, _, _ in best["others"])


def test_the_newest_hits_are_all_there_page_by_page(site: Site) -> None:
    listed: list[tuple[str, int]] = []
    more: dict[str, str] = {}
    while True:
        answer = told(site, "search_event_previews", query="tide", order="newest", limit=20, **more)
        listed += [(hit["session_id"], hit["event_index"]) for hit in answer["data"]["matches"]]
        if not answer.get("pagination", {}).get("next_cursor"):
            break
        more = {"cursor": answer["pagination"]["next_cursor"]}
    shown: list[tuple[str, int]] = []
    path = "/found?q=tide&order=newest"
    while path:
        page = site.page(path)
        shown += places(page)
        following = re.search(r'data-more="([^"]+)"', page)
        path = unescape(following[1]) if following else ""
    assert shown == listed and len(listed) > 40


# -- a conversation --------------------------------------------------------------------------------


@pytest.mark.thorough
def test_windows_are_disjoint_and_complete_and_every_event_has_a_place(site: Site) -> None:
    page = site.page(f"/s/{LARGE}")
    windows, last = (int(re.findall(rf'data-{name}="(\d+)"', page)[0]) for name in ("windows", "last"))
    found = [event for number in range(windows) for event in events(site.page(f"/s/{LARGE}/window/{number}"))]
    assert len(found) == len(set(found))
    stored = subprocess.run(
        [AGTRACE, "export", LARGE, "--jsonl"], env=site.environment, capture_output=True, text=True, check=True
    )
    assert set(found) == {json.loads(line)["event_index"] for line in stored.stdout.splitlines()}
    assert max(found) <= last and windows == last // 100 + 1
    assert events(site.page(f"/s/{LARGE}/window/{windows}")) == []


@pytest.mark.parametrize("ago", [7_200, 40 * 86_400])
def test_the_first_page_is_what_was_done_last_and_a_file_shows_who_wrote_it_and_why(
    own_home: Path, tmp_path: Path, compiled_rules: Path, ago: int
) -> None:
    """A question that waits is shown, and nothing of a file that no session named."""
    written, other = tmp_path / "store.py", tmp_path / "private.py"
    written.write_text("import sqlite3\n")
    other.write_text("nobody's business\n")
    log = Claude(own_home, 7, ago=ago)
    log.asked("Open the database in one place.")
    log.calls("Write", file_path=str(written), content="import sqlite3\n")
    log.returns("written")
    log.calls("AskUserQuestion", "ask", questions=[{"question": "Shall it wait?", "options": []}])
    with opened(own_home, compiled_rules) as site:
        page = until(lambda: "Open the database" in (found := site.client.get("/work").text) and found)
        assert ("<h1>The week of 20" in page) == (ago > 7_200)
        assert "Left open, waiting for an answer" in page and 'href="/s/00000007"' in page
        assert ("asks you: <bdi>Shall it wait?</bdi>" in site.page("/s/00000007")) == (ago == 7_200)
        blamed = site.page(f"/why?file={written}")
        assert "Open the database in one place." in blamed and "<pre>import sqlite3</pre>" in blamed
        assert "business" not in site.page(f"/why?file={other}")
        assert "Open the database in one place." in site.page("/costs?by=session")


@pytest.mark.thorough
def test_what_the_program_added_again_and_again_is_one_entry_in_which_each_has_its_place(
    own_home: Path, compiled_rules: Path
) -> None:
    log = claude_log(own_home / ".claude" / "projects", "5f2d1c1e-0000-4000-8000-000000000001")
    log.prompt("Mend the tide.").say("Mended.")
    before = [{"type": "summary", "summary": f"Tide table number {number}", "leafUuid": "l"} for number in range(5)]
    log.path.write_text("".join(json.dumps(one) + "\n" for one in before) + log.path.read_text())
    with opened(own_home, compiled_rules) as site:
        page = until(lambda: "Mended." in (found := site.client.get("/s/5f2d1c1e").text) and found)
    assert page.count("Added by the program") == 1 and "summary, 5 times" in page
    assert all(f"Tide table number {number}" in page for number in range(5))
    assert events(page) == sorted(events(page)) and {0, 1, 2, 3, 4} <= set(events(page))


@pytest.mark.thorough
def test_a_conversation_says_what_an_export_says(site: Site) -> None:
    """Requests, calls with their outcomes, and the lines that tell of failures."""
    page = "".join(site.page(f"/s/{LARGE}/window/{number}") for number in range(20))
    exported = subprocess.run(
        [AGTRACE, "export", LARGE], env=site.environment, capture_output=True, text=True, check=True
    ).stdout
    assert page.count('<section class="entry request"') == exported.count("\n**Request**\n") > 20
    assert page.count(' class="entry call ') == len(
        re.findall(r"\n`[^\n]*`: (?:ok|failed|rejected|interrupted|unknown)", exported)
    )
    errors = re.findall(r"\nError: `+ ?(.*?) ?`+\n", exported)
    shown = [unescape(one) for one in re.findall(r'<span class="error"><bdi>(.*?)</bdi>', page)]
    assert shown == errors != []
    assert page.count('<h2 class="turn"') == exported.count("\n## Turn ")


def test_edits_are_differences_code_has_colours_and_commands_are_set_apart(site: Site) -> None:
    page = "".join(site.page(f"/s/{LARGE}/window/{number}") for number in range(3))
    loads = re.findall(r'data-load="(/s/[^"]+/call/\d+)"', page)
    page += "".join(site.page(path) for path in loads[::4])
    assert '<span class="add">+' in page and '<span class="del">-' in page and "<h4><bdi>Command</bdi></h4>" in page
    assert re.search(r'class="changed"><span class="add">\+\d+</span> <span class="del">−\d+</span>', page)
    assert re.search(r'<span class="k">\w+</span>', page)


def test_turns_of_the_outline_are_those_of_the_session_and_lead_to_their_beginnings(site: Site) -> None:
    listed = told(site, "get_session_details", session_id=LARGE)["data"]["turns"]
    outline = site.page(f"/s/{LARGE}/outline")
    turns = re.findall(r'data-event="(\d+)" data-turn="(\d+)"', outline)
    assert [int(turn) for _, turn in turns][: len(listed)] == [turn["turn_index"] for turn in listed]
    for first, turn in turns[::9]:
        assert f'id="turn-{turn}" data-event="{first}"' in site.page(f"/s/{LARGE}/window/{int(first) // 100}")
    assert site.page(f"/s/{LARGE}/outline?from=40").count("data-turn=") == len(turns) - 40


def test_a_turn_without_a_request_is_named_by_the_command_that_led_to_it(small: Site) -> None:
    outline = small.page(f"/s/{REVIEW}/outline")
    assert "/review" in outline and "And now?" in outline and "(no request)" not in outline


def test_sub_agents_and_copies_are_linked_both_ways(site: Site) -> None:
    for listed in told(site, "list_sessions", kind="all", limit=50)["data"]["sessions"]:
        if listed.get("kind") is None:
            continue
        child, parent = site.page(f"/s/{listed['id']}"), site.page(f"/s/{listed['parent_id']}")
        assert re.search(rf'(?:Sub-agent|Fork|Continuation) of <a href="/s/{listed["parent_id"]}', child)
        assert f'<a href="/s/{listed["id"]}"' in parent


def test_the_resume_command_is_that_of_the_command_line(site: Site) -> None:
    ended = subprocess.run([AGTRACE, "resume", LARGE], env=site.environment, capture_output=True, text=True, check=True)
    assert f'<code id="resume">{ended.stdout.strip().replace("&", "&amp;")}</code>' in site.page(f"/s/{LARGE}")


def test_findings_score_and_timeline_are_those_of_the_analysis(site: Site) -> None:
    analysis = told(site, "analyze_session", session_id=LARGE)["data"]
    health = site.client.get(f"/s/{LARGE}/health").json()
    assert health["row"]["score"] == analysis["score"]
    shown = {found["message"] for found in health["details"]["insights"]}
    assert {found["message"] for found in analysis["insights"]} <= shown
    assert len(health["details"]["timeline"]["kinds"]) > 100 and health["details"]["timeline"]["at"]


def test_a_session_has_one_address_by_whatever_it_is_named(site: Site) -> None:
    whole = told(site, "get_session_details", session_id=LARGE)["data"]["session_id"]
    for named in (whole, whole[:12]):
        answer = site.client.get(f"/s/{named}?at=812")
        assert str(answer.url).endswith(f"/s/{LARGE}?at=812") and 'data-window="8"' in answer.text
    newest = ids(site.page("/"))[0]
    assert str(site.client.get("/s/last").url).endswith(f"/s/{newest}")


@pytest.mark.parametrize(
    ("path", "status"),
    [("/s/nobody", 404), ("/s/nobody/health", 404), (f"/s/{LARGE}/call/0", 404), (f"/s/{LARGE}/call/99999", 404),
     (f"/s/{LARGE}/text/99999", 404), (f"/s/{LARGE}/window/x", 400), (f"/s/{LARGE}?at=-1", 400),
     (f"/s/{LARGE}/window/{'9' * 40}", 400), ("/static/x/passwd", 404), ("/nothing", 404)],
)  # fmt: skip
def test_what_is_not_there_is_said_on_a_page(site: Site, path: str, status: int) -> None:
    answer = site.client.get(path)
    assert answer.status_code == status and '<p class="empty">' in answer.text


# -- while a session runs --------------------------------------------------------------------------


def test_an_open_page_is_told_of_new_events_and_asks_for_them(own_home: Path, compiled_rules: Path) -> None:
    log = claude_log(own_home / ".claude", "11ee0000-0000-4000-8000-000000000001")
    log.prompt("Begin").say("Begun.").call("Bash", {"command": "sleep 5"}, None)
    with opened(own_home, compiled_rules) as site:
        page = until(lambda: (found := site.client.get("/s/11ee0000")).status_code == 200 and found.text)
        assert "No result yet" in page and "It works." not in page
        with site.client.stream("GET", "/s/11ee0000/live") as answer:
            lines = answer.iter_lines()
            assert next(lines) == "event: state"
            before = json.loads(next(lines).removeprefix("data: "))
            log.say("It works.")
            changed = next(line for line in lines if line.startswith("data: "))
        after = json.loads(changed.removeprefix("data: "))
        assert after["last"] == before["last"] + 1
        assert "It works." in site.page(f"/s/11ee0000/window/{after['last'] // 100}")
        assert ids(site.page("/"))[0] == "11ee0000"


@pytest.mark.thorough
def test_without_an_index_a_page_waits_for_it(own_home: Path, compiled_rules: Path) -> None:
    with opened(own_home, compiled_rules) as site:
        page = until(lambda: "No sessions match" in site.client.get("/").text)
        assert page


def test_a_damaged_index_is_said_on_every_page_and_nothing_else_is_told(own_home: Path, compiled_rules: Path) -> None:
    claude_log(own_home / ".claude", "11ee0000-0000-4000-8000-000000000001").prompt("Begin").say("Begun.")
    with opened(own_home, compiled_rules) as site:
        until(lambda: site.client.get("/s/11ee0000").status_code == 200)
        index = Path(site.environment["AGTRACE_DATA_DIR"]) / "index.sqlite3"
        for part in (index.with_name("index.sqlite3-wal"), index):
            part.write_bytes(b"\x00" * part.stat().st_size)
        for path in ("/", "/costs", "/s/11ee0000", "/s/11ee0000/health", "/found?q=begun"):
            answer = site.client.get(path)
            assert answer.status_code == 503 or "damaged" in answer.text, (path, answer.text[-900:])
            assert "Traceback" not in answer.text and "Begun." not in answer.text
