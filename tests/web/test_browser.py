"""The pages in a browser: read, searched and followed by keyboard; nothing foreign runs or is asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.agtrace.asking import claude_log
from tests.agtrace.live_logs import Claude
from tests.web.hostile_sessions import EVIL, SESSIONS
from tests.web.opening import Site, opened, started, until

pytestmark = pytest.mark.thorough

LARGE = "d41f7a52"
SMALL = "8c0d35f1"
DESKTOP = {"viewport": {"width": 1360, "height": 900}, "reduced_motion": "reduce"}
PHONE = {"viewport": {"width": 390, "height": 844}, "reduced_motion": "reduce"}
PAGES = [
    "/",
    "/projects",
    "/costs?by=session",
    "/work?period=this+week",
    "/search?q=database+locked",
    f"/s/{LARGE}",
    f"/s/{LARGE}/text/3",
    "/nothing",
]

Visit = Callable[..., Any]


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    """Opens a page with the cookie; at the end no page has asked anybody else, reported, or refused anything."""
    troubles: list[str] = []
    contexts = []

    def open_page(site: Site, path: str = "/", **options: Any) -> Any:
        context = browser.new_context(**{**DESKTOP, **options})
        contexts.append(context)
        context.set_default_timeout(300_000)
        context.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error('policy: ' + event.blockedURI));"
        )
        page = context.new_page()
        ours = (f"{site.base}/", f"{site.base}?")
        page.on("request", lambda asked: asked.url.startswith(ours) or troubles.append(asked.url))
        page.on("console", lambda said: said.type == "error" and troubles.append(said.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(dialog.message))
        name, value = site.cookie
        context.add_cookies([{"name": name, "value": value, "url": site.base, "httpOnly": True, "sameSite": "Strict"}])
        page.goto(site.base + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    allowed = re.compile(r"status of 404")  # a page that isn't there says so
    assert [trouble for trouble in troubles if not allowed.search(trouble)] == []


def becomes(page: Any, expression: str) -> None:
    """Wait until an expression is true on a page, whose policy lets nothing be evaluated in it."""
    until(lambda: page.evaluate(expression))


def focused(page: Any) -> str:
    """The text of what has the focus."""
    return str(page.evaluate("document.activeElement.textContent"))


# -- reading ---------------------------------------------------------------------------------------


def test_the_file_that_the_command_opens_leads_to_the_pages_and_is_gone(
    browser: Any, site: Site, tmp_path: Path
) -> None:
    """The key is in no address that stays, and the cookie is out of reach for scripts."""
    with started(site, tmp_path, "d41f7a52") as (link, address):
        page = browser.new_page()
        page.goto(address)
        page.wait_for_url(re.compile(f"^{link.partition('/enter')[0]}/s/"))
        assert "key" not in page.url and page.evaluate("document.cookie") == ""
        (cookie,) = page.context.cookies()
        assert cookie["sameSite"] == "Strict" and cookie["httpOnly"]
        assert not Path(urlsplit(address).path).parent.exists()
        assert page.goto(link).ok  # the browser is known; the printed link is another one
        page.context.clear_cookies()
        assert page.goto(link).status == 401
        page.close()


def test_a_session_is_found_opened_read_and_left_by_keyboard(site: Site, visit: Visit) -> None:
    page = visit(site)
    press = page.keyboard.press
    press("j")
    press("j")
    press("k")
    title = page.locator(".cell-title > a").first.inner_text()
    assert focused(page) == title
    page.focus(f"tr[data-id='{LARGE}'] .cell-title > a")
    press("Enter")
    page.wait_for_selector("#session-title")
    page.wait_for_load_state()  # keys are for its scripts
    press("j")
    press("j")
    becomes(page, "location.hash === '#turn-1'")
    assert page.locator("#outline [aria-current] .number").inner_text() == "1"
    press("n")
    failed = page.locator(".call.failed.chosen")
    failed.wait_for()
    assert failed.locator(".error").first.is_visible() and not failed.locator("pre").first.is_visible()
    press("Enter")
    failed.locator("pre").first.wait_for(state="visible")
    press("h")
    page.locator("#health .finding").first.wait_for()
    assert page.locator("#health .timeline .mark").count() > 100 and page.locator("#health canvas").is_visible()
    press("?")
    assert page.is_visible("#keys")
    press("Escape")
    assert not page.is_visible("#keys")
    press("Escape")
    page.wait_for_url(f"{site.base}/")


def test_every_event_is_reached_by_its_link_and_windows_load_as_one_scrolls(site: Site, visit: Visit) -> None:
    page = visit(site, f"/s/{LARGE}#e812", reduced_motion="no-preference")
    page.wait_for_selector(".entry.chosen #e812, #e812.chosen", state="attached")
    top = page.evaluate("document.querySelector('#e812').closest('.entry').getBoundingClientRect().top")
    assert 0 <= top < 400
    page.keyboard.press("G")
    becomes(page, "[...document.querySelectorAll('.window')].at(-1).dataset.empty === undefined")
    page.keyboard.press("g")
    becomes(page, "document.querySelector('#e3') !== null")
    shown = page.evaluate(
        "[...document.querySelectorAll('[id^=e]')].map((one) => one.id).filter((id) => /^e\\d+$/.test(id))"
    )
    assert len(shown) == len(set(shown))
    assert [int(one[1:]) for one in shown] == sorted(int(one[1:]) for one in shown) or len(shown) > 100
    page.click("#outline [data-turn='30']")
    becomes(page, "location.hash === '#turn-30'")
    assert 0 <= page.evaluate("document.querySelector('#turn-30').getBoundingClientRect().top") < 200


def test_in_a_session_of_many_turns_the_outline_has_those_around_the_one_that_is_read(
    own_home: Path, compiled_rules: Path, visit: Visit
) -> None:
    log = claude_log(own_home / ".claude", "11ee0000-0000-4000-8000-000000000001")
    for number in range(700):
        log.prompt(f"Request {number}").say(f"Answer {number}.")
    with opened(own_home, compiled_rules, logs=own_home / ".claude") as site:
        page = visit(site, "/s/11ee0000?at=1100#e1100", reduced_motion="no-preference")
        current = page.locator("#outline [aria-current]", has_text=re.compile(r"Request 5[45]\d"))
        current.wait_for()
        assert 0 <= page.evaluate("document.querySelector('.chosen').getBoundingClientRect().top") < 300
        assert page.locator("#outline [data-turn='0']").count() == 0
        page.click("#outline [data-earlier]")
        page.locator("#outline [data-turn='400']").wait_for(state="attached")
        turns = page.evaluate(
            "[...document.querySelectorAll('#outline [data-turn]')].map((a) => Number(a.dataset.turn))"
        )
        assert turns == list(range(turns[0], turns[-1] + 1))
        page.keyboard.press("j")
        becomes(page, "/^#turn-5[45]\\d$/.test(location.hash)")
        page.close()


def test_findings_stand_where_they_happened_and_the_timeline_leads_to_events(site: Site, visit: Visit) -> None:
    page = visit(site, f"/s/{LARGE}")
    health = site.client.get(f"/s/{LARGE}/health").json()
    found = next(one for one in health["details"]["insights"] if one["evidence"] and "session_id" not in one)
    event = found["evidence"][0][0]
    becomes(page, "!document.querySelector('#health .hint').textContent.startsWith('score,')")
    page.goto(f"{site.base}/s/{LARGE}?at={event}#e{event}")
    page.locator(".noted", has_text=found["message"][:60]).first.wait_for()
    page.keyboard.press("h")
    page.locator("#health .timeline .mark.tool").nth(40).click(force=True)
    becomes(page, "/^#e\\d+$/.test(location.hash)")
    page.locator("#health .told a").wait_for(state="attached")


def test_a_long_result_is_loaded_when_its_call_is_unfolded(hostile: Site, visit: Visit) -> None:
    page = visit(hostile, f"/s/{SESSIONS[8].id}")
    call = page.locator("details.call[data-load]")
    assert call.locator("pre").count() == 0
    call.locator("summary").focus()
    page.keyboard.press("Enter")
    page.locator(".call pre", has_text="line 1000").wait_for()
    page.click("text=/Show the whole text: .* characters/")
    page.wait_for_selector("pre.whole")
    assert page.locator("[rel=next]").count() == 2
    page.click("text=Back to the conversation")
    page.wait_for_selector(".entry.chosen")


def test_a_sub_agent_is_linked_only_if_its_log_is_here(own_home: Path, compiled_rules: Path, visit: Visit) -> None:
    log = claude_log(own_home / ".claude", "11ee0000-0000-4000-8000-000000000001")
    log.prompt("Ask two.")
    for agent in ("a1f8104", "a2c9215"):
        call = {"type": "tool_use", "id": f"toolu_{agent}", "name": "Task", "input": {"prompt": f"Look, {agent}."}}
        log.write("assistant", [call])
        result = {"type": "tool_result", "tool_use_id": f"toolu_{agent}", "content": "Seen."}
        log.write("user", [result], toolUseResult={"status": "completed", "agentId": agent})
    asked = claude_log(own_home / ".claude", "agent-a2c9215")
    asked.write("user", "Look, a2c9215.", isSidechain=True, agentId="a2c9215", sessionId=log.session_id)
    asked.write(
        "assistant", [{"type": "text", "text": "Seen."}], isSidechain=True, agentId="a2c9215", sessionId=log.session_id
    )
    with opened(own_home, compiled_rules, logs=own_home / ".claude") as site:
        page = visit(site, "/s/11ee0000")
        assert page.locator(".started").all_inner_texts() == [
            "Sub-agent agent-a1f8104, whose log isn’t here",
            "Sub-agent agent-a2",
        ]
        page.click(".started a")
        page.locator(".family", has_text="Sub-agent of").wait_for()
        page.close()


def test_the_next_failure_is_found_wherever_it_is_and_the_last_one_said(
    own_home: Path, compiled_rules: Path, visit: Visit
) -> None:
    log = claude_log(own_home / ".claude", "11ee0000-0000-4000-8000-000000000001").prompt("Begin")
    for number in range(1, 601):
        log.call("Bash", {"command": f"make {number}"}, "Error: no", failed=number in (3, 4, 250, 590))
    with opened(own_home, compiled_rules, logs=own_home / ".claude") as site:
        page = visit(site, "/s/11ee0000")
        page.keyboard.press("n")
        page.keyboard.press("n")
        for number in (4, 250, 590):
            page.locator(".call.failed.chosen", has_text=f"make {number}").wait_for()
            assert page.evaluate(
                "(box => box.top >= 0 && box.top < 300)(document.querySelector('.chosen').getBoundingClientRect())"
            )
            page.keyboard.press("n")
        page.locator("#notice", has_text="No more failures").wait_for()
        page.keyboard.press("p")
        page.locator(".call.failed.chosen", has_text="make 250").wait_for()
        page.keyboard.press("g")
        page.keyboard.press("p")
        page.locator("#notice", has_text="No earlier failures").wait_for()
        page.keyboard.press("n")
        page.locator(".call.failed.chosen", has_text="make 3").wait_for()
        page.close()


def test_the_command_that_resumes_a_session_is_copied(site: Site, visit: Visit) -> None:
    page = visit(site, f"/s/{LARGE}", permissions=["clipboard-write"])
    page.click("[data-copy=resume]")
    page.locator("[data-copy=resume]", has_text="Copied").wait_for()
    page.keyboard.press("/")
    page.keyboard.press("Control+V")
    assert page.input_value("#find-query") == page.inner_text("#resume")


def test_a_call_without_a_result_runs_while_its_session_does(
    own_home: Path, compiled_rules: Path, visit: Visit
) -> None:
    log = Claude(own_home)
    log.asked("Run the tests.")
    log.calls("Bash", command="make test")
    ended = Claude(own_home, 2, ago=7200)
    ended.asked("Run the tests.")
    ended.calls("Bash", command="make test")
    with opened(own_home, compiled_rules) as site:
        until(lambda: site.client.get("/s/00000002").status_code == 200)
        page = visit(site, "/s/00000002")
        assert page.locator(".call .outcome").all_inner_texts() == ["unknown"]
        page.goto(f"{site.base}/s/00000001")
        assert page.locator(".call .outcome").all_inner_texts() == ["running"]
        log.returns("All passed.")
        page.locator(".call .outcome", has_text="ok").wait_for()
        page.close()


def test_without_scripts_lists_filters_search_and_conversations_work(site: Site, visit: Visit) -> None:
    page = visit(site, java_script_enabled=False)
    page.select_option("[name=agent]", "codex")
    page.click("text=Apply")
    assert "agent=codex" in page.url and page.locator(".sessions tbody tr").count() > 0
    page.goto(f"{site.base}/search?q=database+locked")
    page.locator(".results .hit").first.click()
    page.wait_for_selector("#session-title")
    page.goto(f"{site.base}/s/{LARGE}")
    page.click("text=Later events")
    assert page.locator("[data-number='1'] .entry").count() > 10


# -- searching, filtering --------------------------------------------------------------------------


def test_a_search_shows_hits_as_one_types_and_opens_them_by_keyboard(site: Site, visit: Visit) -> None:
    page = visit(site)
    page.keyboard.press("/")
    page.keyboard.type("database is lock")
    page.locator("#find-results .hit mark").first.wait_for()
    page.keyboard.type("ed")
    becomes(page, "document.querySelector('#find-results').textContent.includes('database is locked')")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    link = page.evaluate("document.activeElement.getAttribute('href')")
    assert re.fullmatch(r"/s/[^/]+\?at=\d+#e\d+", link)
    page.keyboard.press("Enter")
    page.wait_for_selector("#session-title")
    event = link.partition("#")[2]
    becomes(page, f"document.querySelector('#{event}')?.closest('.entry').classList.contains('chosen')")
    page.keyboard.press("/")
    page.check("#find [name=session]")
    page.check("#find [value=newest]")
    page.fill("#find-query", "locked")
    page.locator("#find-results .hits .hit").first.wait_for()
    session = page.locator("#session").get_attribute("data-id")
    assert {session} == set(re.findall(r"/s/([^?]+)\?", page.inner_html("#find-results").partition("data-more")[0]))
    page.keyboard.press("Escape")
    assert not page.is_visible("#find")


def test_back_leads_from_a_hit_to_the_search_that_found_it(site: Site, visit: Visit) -> None:
    page = visit(site, "/?agent=codex")
    page.keyboard.press("/")
    page.check("#find [value=newest]")
    page.fill("#find-query", "locked")
    hit = page.locator("#find-results .hits .hit").first
    hit.wait_for()
    place = hit.get_attribute("href")
    for _ in range(2):
        hit.click()
        page.wait_for_selector("#session-title")
        page.go_back()
        hit.wait_for()
        assert hit.get_attribute("href") == place and page.input_value("#find-query") == "locked"
        assert page.is_checked("#find [value=newest]") and page.locator("#find mark").count() > 0
    page.keyboard.press("Escape")
    page.wait_for_url(f"{site.base}/?agent=codex")
    page.goto(f"{site.base}/s/{LARGE}")
    page.keyboard.press("/")
    page.check("#find [name=session]")
    page.fill("#find-query", "locked")
    for _ in range(2):
        hit = page.locator("#find-results .hit-session li .hit").first
        hit.click()
        page.locator(".entry.chosen").wait_for()
        assert "find=" not in page.url and not page.is_visible("#find")
        page.go_back()
        hit.wait_for()
        assert page.is_checked("#find [name=session]") and page.input_value("#find-query") == "locked"
        page.reload()


def test_filters_work_while_they_are_changed_and_stay_in_the_address(site: Site, visit: Visit) -> None:
    page = visit(site)
    before = page.inner_text("#count")
    page.select_option("[name=agent]", "gemini")
    becomes(page, f"document.querySelector('#count').textContent !== {json.dumps(before)}")
    agents = page.locator(".sessions .agent").all_inner_texts()
    assert set(agents) == {"Gemini CLI"} and "agent=gemini" in page.url
    page.fill("[name=query]", "nobody ever said this")
    page.locator(".empty", has_text="No sessions match").wait_for()
    page.locator(".empty a").evaluate("link => { globalThis.seen = link; }")
    page.locator("[name=query]").dispatch_event("change")  # as when the click leaves the field
    page.wait_for_load_state("networkidle")
    assert page.evaluate("globalThis.seen.isConnected"), "the link that is clicked stays where it is"
    page.click(".empty a")
    page.wait_for_url(f"{site.base}/")
    assert page.inner_text("#count") == before


def test_escape_leads_from_a_session_to_the_list_as_it_was_left(
    own_home: Path, compiled_rules: Path, visit: Visit
) -> None:
    for number in range(70):
        claude_log(own_home / ".claude", f"{number:08x}-0000-4000-8000-000000000001").prompt(f"Number {number}")
    with opened(own_home, compiled_rules, logs=own_home / ".claude") as site:
        page = visit(site, "/?agent=claude_code&sort=newest")
        page.click("#more")
        becomes(page, "document.querySelectorAll('.sessions tbody tr').length === 70")
        row = page.locator(".sessions tbody tr .cell-title > a").nth(60)
        title = row.inner_text()
        row.focus()
        top = page.evaluate("scrollY")
        page.keyboard.press("Enter")
        page.wait_for_selector("#session-title")
        page.wait_for_load_state()
        page.keyboard.press("Escape")
        page.wait_for_url(f"{site.base}/?agent=claude_code&sort=newest")
        becomes(page, f"Math.abs(scrollY - {top}) < 3 && scrollY > 900")
        assert focused(page) == title
        page.go_back()
        page.wait_for_selector("#session-title")
        page.go_back()
        becomes(page, f"Math.abs(scrollY - {top}) < 3")
        page.click(".brand")
        page.wait_for_url(f"{site.base}/")
        assert page.evaluate("scrollY") == 0 and page.locator(".sessions tbody tr").count() == 50
        page.close()


# -- while a session runs --------------------------------------------------------------------------


def test_a_running_session_grows_on_its_page_and_in_the_list(
    own_home: Path, compiled_rules: Path, visit: Visit
) -> None:
    log = claude_log(own_home / ".claude", "11ee0000-0000-4000-8000-000000000001")
    log.prompt("Begin").say("Begun.").call("Bash", {"command": "sleep 5"}, None)
    with opened(own_home, compiled_rules) as site:
        until(lambda: site.client.get("/s/11ee0000").status_code == 200)
        page = visit(site, "/s/11ee0000")
        page.locator(".call.unknown > summary").click()
        until(lambda: "No result yet" in page.inner_text(".call.unknown"))
        log.say("It **works** now.")
        page.locator(".answer strong", has_text="works").wait_for()
        assert page.locator(".call.unknown").evaluate("(call) => call.open"), "what is unfolded stays so"
        assert page.is_visible("#live") and page.is_visible("#follow")
        log.prompt("And then?")
        page.locator("#outline .asks", has_text="And then?").wait_for()
        until(lambda: "Turns 2" in page.locator(".head .facts").inner_text())
        for number in range(150):
            log.say(f"Line {number}.")
        page.locator("#follow[aria-pressed=true]").wait_for()
        page.locator(".answer", has_text="Line 149.").wait_for()
        until(lambda: page.evaluate("innerHeight + scrollY > document.documentElement.scrollHeight - 400"))
        page.goto(f"{site.base}/")
        page.locator(".sessions tbody tr").first.wait_for()
        claude_log(own_home / ".claude", "22ff0000-0000-4000-8000-000000000002").prompt("A second one").say("Yes.")
        page.locator(".sessions .fresh", has_text="A second one").wait_for()
        page.close()


def test_scrolling_up_ends_following_and_reaching_the_end_resumes_it(
    own_home: Path, compiled_rules: Path, visit: Visit
) -> None:
    log = claude_log(own_home / ".claude", "11ee0000-0000-4000-8000-000000000001").prompt("Begin")
    for number in range(150):
        log.say(f"Line {number}.")
    with opened(own_home, compiled_rules) as site:
        until(lambda: site.client.get("/s/11ee0000").status_code == 200)
        page = visit(site, "/s/11ee0000")
        left = "document.documentElement.scrollHeight - innerHeight - scrollY"

        def grows(text: str) -> None:
            before = page.inner_text("#end")
            log.say(f"{text}\n\n{'More. ' * 400}")
            until(lambda: page.inner_text("#end") != before)

        grows("While the beginning is read.")
        page.locator("#follow[aria-pressed=false]").wait_for()
        assert page.evaluate("scrollY") == 0
        page.click("#follow")
        becomes(page, f"{left} < 2")
        grows("While it is followed.")
        becomes(page, f"{left} < 2")
        page.mouse.move(500, 500)
        page.mouse.wheel(0, -100)
        page.locator("#follow[aria-pressed=false]").wait_for()
        top = page.evaluate("scrollY")
        grows("While one reads above.")
        grows("And once more.")
        assert page.evaluate("scrollY") == top
        for text in ("The end is reached by wheel.", "The end is reached by key."):
            if "wheel" in text:
                page.mouse.wheel(0, 9000)
            else:
                page.keyboard.press("G")
            page.locator("#follow[aria-pressed=true]").wait_for()
            grows(text)
            becomes(page, f"{left} < 2")
            page.mouse.wheel(0, -100)
            page.locator("#follow[aria-pressed=false]").wait_for()
        page.close()


def test_what_begins_between_a_list_and_its_first_look_is_shown(
    own_home: Path, compiled_rules: Path, visit: Visit
) -> None:
    claude_log(own_home / ".claude", "11ee0000-0000-4000-8000-000000000001").prompt("Begin").say("Begun.")
    with opened(own_home, compiled_rules) as site:
        until(lambda: site.client.get("/s/11ee0000").status_code == 200)
        page = visit(site, "/costs")
        listening: list[Any] = []
        page.route(f"{site.base}/live", lambda route: listening.append(route))
        page.goto(f"{site.base}/")
        until(lambda: page.locator(".sessions tbody tr").count() == 1 and listening)
        claude_log(own_home / ".claude", "22ff0000-0000-4000-8000-000000000002").prompt("A second one").say("Yes.")
        until(lambda: site.client.get("/s/22ff0000").status_code == 200)
        listening[0].continue_()
        page.locator(".sessions .fresh", has_text="A second one").wait_for()
        page.close()


# -- hostile sessions ------------------------------------------------------------------------------


def test_no_hostile_session_runs_a_script_loads_anything_or_leaves_its_place(hostile: Site, visit: Visit) -> None:
    page = visit(hostile)
    for session in SESSIONS:
        page.goto(f"{hostile.base}/s/{session.id}")
        page.wait_for_selector(".entry")
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        becomes(page, "![...document.querySelectorAll('.body')].some((one) => one.ariaBusy === 'true')")
        page.locator("#health .score-line").wait_for()
        assert page.evaluate("window.__pwned") is None
        assert page.locator("img, iframe, object, embed, video, audio, base, style").count() == 0
        assert page.url.startswith(f"{hostile.base}/s/{session.id[:8]}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), session.says
        covering = page.evaluate("getComputedStyle(document.querySelector('#conversation')).position")
        assert covering == "static" and page.is_visible(".brand")
    page.goto(f"{hostile.base}/?kind=all")
    assert page.evaluate("window.__pwned") is None
    page.keyboard.press("/")
    page.fill("#find-query", EVIL)
    page.locator("#find-results .hit").first.wait_for()
    page.check("#find [value=newest]")
    page.locator("#find-results .hits .hit").first.wait_for()
    assert page.evaluate("window.__pwned") is None


# -- looks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES)
def test_a_page_fits_a_phone(site: Site, visit: Visit, path: str) -> None:
    page = visit(site, path, **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    if path == f"/s/{LARGE}":
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.locator("#health .score-line").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    if path == "/":
        page.click("#open-search")
        page.fill("#find-query", "locked")
        page.locator("#find-results .hit").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_look_is_the_systems_until_it_is_chosen_and_stays_chosen(site: Site, visit: Visit) -> None:
    page = visit(site, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.keyboard.press("t")
    light = page.evaluate(ground)
    assert sum(map(int, re.findall(r"\d+", light))) > 600 > 150 > sum(map(int, re.findall(r"\d+", dark)))
    page.goto(f"{site.base}/costs")
    assert page.evaluate(ground) == light


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_no_serious_fault_of_accessibility(site: Site, visit: Visit, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe isn't installed").Axe()
    page = visit(site, color_scheme=scheme, bypass_csp=True)

    options = {"resultTypes": ["violations"]} | ({"runOnly": ["color-contrast"]} if scheme == "dark" else {})

    def faults() -> list[str]:
        found = axe.run(page, options=options).response["violations"]
        return [
            f"{page.url} {one['id']}: {one['nodes'][0]['html'][:200]}" for one in found
            if one["impact"] in ("serious", "critical")
        ]  # fmt: skip

    found = []
    for path in [*PAGES[:4], f"/s/{SMALL}"]:
        page.goto(site.base + path)
        if path.startswith("/s/"):
            page.evaluate("document.querySelector('#health').open = true")
            page.locator("#health .score-line").wait_for()
            page.evaluate("document.querySelectorAll('.entry').forEach((one) => { one.open = true; })")
            becomes(page, "![...document.querySelectorAll('.body')].some((one) => one.ariaBusy === 'true')")
        found += faults()
    page.keyboard.press("/")
    page.fill("#find-query", "database is locked")
    page.locator("#find-results .hit").first.wait_for()
    found += faults()
    assert found == []
