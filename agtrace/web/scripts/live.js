// What changes while the page is open: the server says so, and the page asks for what is new. Hidden pages don't listen.

let source = null;

function listen(address, changed) {
  const open = () => {
    source = new EventSource(address);
    source.addEventListener("state", (event) => changed(JSON.parse(event.data), true));
    source.addEventListener("changed", (event) => changed(JSON.parse(event.data), false));
  };
  const follow = () => {
    source?.close();
    source = null;
    if (!document.hidden) open();
  };
  document.addEventListener("visibilitychange", follow);
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => event.persisted && follow());
  follow();
}

const leftBelow = () => document.documentElement.scrollHeight - innerHeight - scrollY;
const atTheEnd = () => leftBelow() < 120;

// Whether the page stays at the end while the session grows: so it does until the reader scrolls up, and again from when
// the end is reached.
const following = { on: false, known: null };

// Brings the facts in the head up to date, unless a later change is already known.
async function renewFacts(state) {
  try {
    const fresh = await part(`${shown.base}/facts`);
    if (following.known === state) byId("live").parentElement.replaceChildren(byId("live"), fresh);
  } catch {
    // the next change tries again
  }
}

async function sessionChanged(state) {
  if (!state || (following.known && JSON.stringify(following.known) === JSON.stringify(state))) return;
  const isFirst = following.known === null;
  following.known = state;
  if (isFirst && state.last === shown.last) return;
  byId("live").hidden = false;
  byId("follow").hidden = false;
  renewFacts(state);
  await grow(state.last, Math.floor(Math.max(state.last, 0) / shown.size) + 1);
  byId("end").firstChild.textContent = `${plain(state.last + 1)} events. Secrets are masked.`;
  growOutline();
  if (following.on) toTheEnd();
}

// Follows from here on, unless the reader leaves while the last window is loaded.
async function toTheEnd() {
  follow(true);
  await loadWindow(shown.count - 1);
  if (following.on) scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
}

function follow(on) {
  following.on = on;
  byId("follow").setAttribute("aria-pressed", String(on));
  byId("follow").textContent = on ? "Stop following" : "Follow";
}

function startFollowing() {
  byId("follow").hidden = byId("live").hidden;
  byId("follow").addEventListener("click", () => (following.on ? follow(false) : toTheEnd()));
  follow(atTheEnd());
  let top = scrollY;
  addEventListener(
    "scroll",
    () => {
      const up = scrollY < top;
      top = scrollY;
      if (up && leftBelow() > 4) follow(false); // else the page became shorter
      else if (!up && atTheEnd()) follow(true);
    },
    { passive: true },
  );
}

// The list tells of which state it is: what was written before the page began to listen is new as well.
function listChanged(state) {
  if (!state) return;
  const listed = byId("listed");
  const written = `${state.session}.${state.event}`;
  if (listed.dataset.state === written) return;
  listed.dataset.state = written;
  if (!listed.dataset.grown) showList(location.href, { mark: true });
}

function startLive() {
  const here = byId("live") ?? byId("listed");
  if (!here?.dataset.live) return;
  if (byId("session")) {
    startFollowing();
    listen(here.dataset.live, sessionChanged);
  } else listen(here.dataset.live, listChanged);
}
