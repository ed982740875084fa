// The turns at the side: the one that is read is marked, more are loaded as one scrolls.

const outlineLinks = () => [...byId("outline").querySelectorAll("a[data-turn]")];

function currentTurn() {
  let found = null;
  for (const heading of document.querySelectorAll("h2.turn")) {
    if (heading.getBoundingClientRect().top > innerHeight * 0.35) break;
    found = heading;
  }
  return found ? Number(found.id.slice("turn-".length)) : null;
}

function markTurn() {
  const turn = currentTurn();
  if (turn !== null && !byId("outline").querySelector(`[data-turn="${turn}"]`)) showTurnsAround(turn);
  for (const link of outlineLinks()) {
    const here = Number(link.dataset.turn) === turn;
    if (here === link.hasAttribute("aria-current")) continue;
    if (!here) link.removeAttribute("aria-current");
    else {
      link.setAttribute("aria-current", "true");
      const list = byId("outline");
      if (list.scrollHeight > list.clientHeight) {
        const top = link.offsetTop - list.clientHeight / 2;
        if (Math.abs(list.scrollTop - top) > list.clientHeight / 2 - 40) list.scrollTop = top;
      }
    }
  }
}

// Turns that the outline doesn't have yet, because somebody jumped to them.
let around = null;
async function showTurnsAround(turn) {
  if (around !== null) return;
  around = turn;
  try {
    const found = await part(`${shown.base}/outline?from=${Math.max(turn - 20, 0)}`);
    byId("outline").querySelector("ol").replaceChildren(found);
    watchTurns();
  } catch {
    return; // the next scroll tries again
  } finally {
    around = null;
  }
  markTurn();
}

async function earlierTurns(link) {
  const entry = link.closest("li");
  const from = Number(new URL(link.dataset.earlier, location.href).searchParams.get("from"));
  const found = await part(link.dataset.earlier);
  const known = new Set(outlineLinks().map((one) => one.dataset.turn));
  for (const one of [...found.querySelectorAll("li")]) {
    const turn = one.querySelector("[data-turn]")?.dataset.turn;
    if (turn === undefined ? !one.matches(".preceding") || from === 0 : known.has(turn)) one.remove();
  }
  entry.replaceWith(found);
}

async function moreTurns(link) {
  const entry = link.closest("li");
  if (entry.dataset.loading) return;
  entry.dataset.loading = "true";
  try {
    const found = await part(link.dataset.more);
    found.querySelector(".preceding")?.remove();
    entry.replaceWith(found);
    watchTurns();
  } catch {
    delete entry.dataset.loading;
  }
}

let turnWatcher = null;
function watchTurns() {
  const link = byId("outline").querySelector("[data-more]");
  if (link) turnWatcher.observe(link);
}

// The turns after those that are known, while the session runs.
async function growOutline() {
  if (byId("outline").querySelector("[data-more]")) return;
  const last = outlineLinks().at(-1);
  const from = last ? Number(last.dataset.turn) : 0;
  const fresh = await part(`${shown.base}/outline?from=${from}`);
  fresh.querySelector(".preceding")?.remove();
  last?.closest("li").remove();
  byId("outline").querySelector("ol").append(fresh);
  markTurn();
}

let aimed = null; // the turn that keys are on the way to, while its window is loaded

async function moveTurn(step) {
  const links = outlineLinks();
  const turn = aimed ?? currentTurn();
  const here = links.findIndex((link) => Number(link.dataset.turn) === turn);
  const next = links[Math.max(0, Math.min(links.length - 1, here < 0 ? 0 : here + step))];
  if (!next) return;
  const wanted = Number(next.dataset.turn);
  aimed = wanted;
  await goToEvent(Number(next.dataset.event), { turn: wanted });
  if (aimed === wanted) aimed = null;
}

function startOutline() {
  if (matchMedia("(max-width: 68rem)").matches) byId("outline").querySelector("details").open = false;
  turnWatcher = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) if (isIntersecting) moreTurns(target);
  });
  watchTurns();
  let waiting = false;
  addEventListener(
    "scroll",
    () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        markTurn();
      });
    },
    { passive: true },
  );
  markTurn();
  byId("outline").addEventListener("click", (event) => {
    const link = event.target.closest("[data-earlier]");
    if (!link) return;
    event.preventDefault();
    earlierTurns(link);
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-event]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || !samePage(link)) return;
    event.preventDefault();
    const { turn } = link.dataset;
    goToEvent(Number(link.dataset.event), turn === undefined ? {} : { turn: Number(turn) });
  });
}
