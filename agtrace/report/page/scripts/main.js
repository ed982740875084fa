// The address decides what is shown: #s=<id> is a session, everything else a place in the report.

// Where the user left the report, to return there; `asked` means that a place in it was asked for instead.
const place = { scroll: 0, link: null, inHistory: false, asked: false, endChart: () => {} };

function wantedSession() {
  if (!location.hash.startsWith("#s=")) return null;
  try {
    return decodeURIComponent(location.hash.slice(3));
  } catch {
    return null;
  }
}

function goTo(hash) {
  place.asked = true;
  location.hash = hash;
}

function leaveSession() {
  if (place.inHistory) history.back();
  else goTo("#sessions");
}

async function openSession(row) {
  const details = await detailsOf(row);
  if (wantedSession() !== row.id) return;
  if (!inSession()) {
    const link = document.activeElement;
    Object.assign(place, { scroll: scrollY, link, inHistory: link !== document.body });
  }
  place.endChart();
  const article = byId("session");
  const draw = fillSession(article, row, details);
  byId("report").hidden = true;
  article.hidden = false;
  place.endChart = draw();
  place.asked = false;
  scrollTo({ top: 0, behavior: "instant" });
  article.focus({ preventScroll: true });
}

function showReport() {
  if (!inSession()) return;
  place.endChart();
  place.endChart = () => {};
  byId("session").hidden = true;
  byId("session").replaceChildren();
  byId("report").hidden = false;
  const target = place.asked ? byId(location.hash.slice(1)) : null;
  if (target) target.scrollIntoView({ behavior: "instant" });
  else {
    scrollTo({ top: place.scroll, behavior: "instant" });
    if (place.link?.isConnected) place.link.focus({ preventScroll: true });
  }
}

function route() {
  const id = wantedSession();
  const row = id === null ? undefined : list.byId.get(id);
  if (row) openSession(row);
  else showReport();
}

async function main() {
  document.documentElement.classList.add("js");
  makeRoom();
  requestAnimationFrame(() => setTimeout(drawOverview));
  if (!("DecompressionStream" in window)) {
    byId("found").textContent = "This browser is too old to unpack the list of sessions; it takes one from 2023 or later.";
    return;
  }
  await openList();
  list.byId = new Map(list.rows.map((row) => [row.id, row]));
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (link?.matches(".skip")) {
      event.preventDefault(); // it exists in every view, so the address stays
      byId("main").focus();
    } else if (link) place.asked = true;
  });
  addEventListener("hashchange", route);
  route();
  if (wantedSession() === null) byId(location.hash.slice(1))?.scrollIntoView({ behavior: "instant" });
}

// Print in light colours.
let beforePrint;
addEventListener("beforeprint", () => {
  beforePrint = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  lookChanged();
});
addEventListener("afterprint", () => {
  if (beforePrint) document.documentElement.dataset.theme = beforePrint;
  else delete document.documentElement.dataset.theme;
  lookChanged();
});

main();
