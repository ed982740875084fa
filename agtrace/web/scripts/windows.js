// The conversation as windows of events: those near what is seen are loaded, those far away make room for others.

const GUESS = 3200; // the height of a window that was never shown
const KEPT = 24; // windows that stay loaded

const shown = { count: 0, size: 100, last: -1, base: "", order: [], loading: new Map(), watcher: null, found: [] };

const windowElements = () => [...byId("conversation").children].filter((child) => child.dataset.number !== undefined);
const windowElement = (number) => byId("conversation").querySelector(`:scope > [data-number="${number}"]`);

function emptyWindow(number) {
  const made = el("div", { class: "window room", "data-number": number, "data-empty": true, "aria-hidden": "true" });
  made.style.height = `${GUESS}px`;
  return made;
}

function fillWindow(element, content) {
  element.replaceChildren(content);
  element.classList.remove("room");
  element.removeAttribute("aria-hidden");
  delete element.dataset.empty;
  element.style.height = "";
}

// Loads a window; what is above the reader's eye grows without moving what is seen.
function loadWindow(number) {
  const element = windowElement(number);
  if (!element || element.dataset.empty === undefined) return Promise.resolve(element);
  if (shown.loading.has(number)) return shown.loading.get(number);
  const loading = part(`${shown.base}/window/${number}`)
    .then((content) => {
      const before = element.getBoundingClientRect();
      fillWindow(element, content);
      if (before.bottom < 0) scrollBy({ top: element.getBoundingClientRect().bottom - before.bottom, behavior: "instant" });
      shown.order.push(number);
      noteFindings(element);
      forgetFar();
      return element;
    })
    .catch(() => null)
    .finally(() => shown.loading.delete(number));
  shown.loading.set(number, loading);
  return loading;
}

// Empties the windows that were loaded first, unless they are near what is seen or somebody is in them.
function forgetFar() {
  while (shown.order.length > KEPT) {
    const place = shown.order.findIndex((number) => {
      const element = windowElement(number);
      const box = element.getBoundingClientRect();
      const near = box.bottom > -4 * innerHeight && box.top < 5 * innerHeight;
      return !near && !element.contains(document.activeElement);
    });
    if (place < 0) return;
    const [number] = shown.order.splice(place, 1);
    const element = windowElement(number);
    const { height } = element.getBoundingClientRect();
    element.replaceChildren();
    element.classList.add("room");
    element.setAttribute("aria-hidden", "true");
    element.dataset.empty = "";
    element.style.height = `${height}px`;
  }
}

// The element of an event, or of the first one after it in its window.
function eventElement(event) {
  const exact = byId(`e${event}`);
  if (exact) return exact;
  const later = [...(windowElement(Math.floor(event / shown.size))?.querySelectorAll('[id^="e"]') ?? [])];
  return later.find((one) => /^e\d+$/.test(one.id) && Number(one.id.slice(1)) > event) ?? later.at(-1) ?? null;
}

async function goToEvent(event, { turn = null, quiet = false } = {}) {
  const number = Math.max(0, Math.min(shown.count - 1, Math.floor(event / shown.size)));
  const element = await loadWindow(number);
  if (!element) return;
  await Promise.all([loadWindow(number - 1), loadWindow(number + 1)]);
  const target = (turn === null ? null : byId(`turn-${turn}`)) ?? eventElement(event);
  if (!target) return;
  const entry = target.closest(".entry") ?? target;
  if (!entry.getClientRects().length) showOnly([]); // what is sought isn't among what is shown
  entry.scrollIntoView({ block: "start", behavior: "instant" });
  if (quiet) return;
  const address = new URL(location.href);
  address.searchParams.delete("at");
  address.hash = turn === null ? `e${event}` : `turn-${turn}`;
  history.replaceState(null, "", address);
  for (const one of document.querySelectorAll(".entry.chosen")) one.classList.remove("chosen");
  if (turn === null) entry.classList.add("chosen");
  focusOn(entry);
}

function focusOn(entry) {
  const focusable = entry.querySelector(":scope > summary") ?? entry;
  if (!focusable.matches("summary, a, button")) focusable.setAttribute("tabindex", "-1");
  focusable.focus({ preventScroll: true });
}

// Brings the last windows up to date after events were added; what is unfolded stays so.
async function grow(last, count) {
  const end = windowElements().at(-1);
  for (let number = shown.count; number < count; number += 1) {
    const made = emptyWindow(number);
    byId("conversation").append(made);
    shown.watcher.observe(made);
  }
  shown.count = count;
  shown.last = last;
  for (const element of windowElements()) {
    const number = Number(element.dataset.number);
    if (element.dataset.empty === undefined && (element === end || element.querySelector(".call.unknown, .call.running")))
      await renew(element, number);
  }
}

async function renew(element, number) {
  let content;
  try {
    content = await part(`${shown.base}/window/${number}`);
  } catch {
    return;
  }
  const open = new Set([...element.querySelectorAll("details[open]")].map((one) => one.id));
  const focused = document.activeElement?.closest?.(".entry")?.id;
  for (const fresh of [...content.children]) {
    const known = fresh.id ? element.querySelector(`:scope > #${CSS.escape(fresh.id)}`) : null;
    if (known && (known.outerHTML === fresh.outerHTML || known.open)) fresh.replaceWith(known);
    else if (open.has(fresh.id)) fresh.open = true;
  }
  fillWindow(element, content);
  if (focused) byId(focused)?.querySelector("summary")?.focus({ preventScroll: true });
  noteFindings(element);
}

// Shows only entries of the kinds that are chosen; all of them if none is.
function showOnly(kinds) {
  for (const button of byId("only").querySelectorAll("button"))
    button.setAttribute("aria-pressed", String(kinds.includes(button.dataset.only)));
  byId("conversation").className = kinds.length ? `some ${kinds.join(" ")}` : "";
}

function startOnly() {
  byId("only").addEventListener("click", ({ target }) => {
    if (!target.dataset.only) return;
    target.setAttribute("aria-pressed", String(target.getAttribute("aria-pressed") !== "true"));
    showOnly([...byId("only").querySelectorAll('[aria-pressed="true"]')].map((button) => button.dataset.only));
  });
}

function startWindows() {
  document.documentElement.style.overflowAnchor = "none"; // what is seen is kept in its place here
  const session = byId("session");
  const conversation = byId("conversation");
  const first = conversation.querySelector(".window");
  const number = Number(first.dataset.number);
  Object.assign(shown, {
    count: Number(session.dataset.windows),
    size: Number(session.dataset.size),
    last: Number(session.dataset.last),
    base: location.pathname,
    order: [number],
  });
  const before = document.createDocumentFragment();
  const after = document.createDocumentFragment();
  for (let n = 0; n < shown.count; n += 1) if (n !== number) (n < number ? before : after).append(emptyWindow(n));
  first.before(before);
  first.after(after);
  shown.watcher = new IntersectionObserver(
    (seen) => {
      for (const { target, isIntersecting } of seen) if (isIntersecting) loadWindow(Number(target.dataset.number));
    },
    { rootMargin: "1200px 0px" },
  );
  const begin = () => {
    for (const element of windowElements()) shown.watcher.observe(element);
  };
  const place = wantedPlace();
  if (place) goToEvent(place.event, place).then(begin);
  else if (number) goToEvent(number * shown.size, { quiet: true }).then(begin);
  else begin();
}

// What the address asks for: an event, or a turn with the event that it begins with.
function wantedPlace() {
  const event = /^#e(\d+)$/.exec(location.hash);
  if (event) return { event: Number(event[1]) };
  const turn = /^#turn-(\d+)$/.exec(location.hash);
  if (!turn) return null;
  const link = byId("outline").querySelector(`[data-turn="${turn[1]}"]`);
  const at = new URLSearchParams(location.search).get("at") ?? link?.dataset.event;
  return at === undefined || at === null ? null : { event: Number(at), turn: Number(turn[1]) };
}
