// The keys of the pages, and what they do.

const finding = () => byId("find").open;

function step(number) {
  if (finding()) moveHit(number);
  else if (byId("session")) moveTurn(number);
  else moveRow(number);
}

// The event that is chosen, if it is seen; else the place between two events at the top of what is seen.
function whereOneIs() {
  const entries = [...document.querySelectorAll(".window .entry")];
  const chosen = entries.find((one) => one.matches(".chosen"));
  const box = chosen?.getBoundingClientRect();
  if (box && box.bottom > 0 && box.top < innerHeight) return Number(chosen.id.slice(1));
  const below = entries.find((one) => one.getBoundingClientRect().top > 80);
  return below ? Number(below.id.slice(1)) - 0.5 : shown.last + 0.5;
}

// Goes to the next failed call, wherever in the session it is, or says that there is none; one press after the other.
let failing = Promise.resolve();
function moveFailure(number) {
  failing = failing.then(() => goToFailure(number)).catch(() => say("This can’t be found now"));
}

async function goToFailure(number) {
  const here = whereOneIs();
  const asked = number > 0 ? `from=${Math.floor(here) + 1}` : `before=${Math.ceil(here)}`;
  const answer = await fetch(`${shown.base}/failure?${asked}`, { credentials: "same-origin" });
  if (!answer.ok) throw new Refused(answer.status);
  const event = await answer.json();
  if (event === null) say(number > 0 ? "No more failures" : "No earlier failures");
  else await goToEvent(event);
}

let silence = 0;
function say(text) {
  const notice = byId("notice");
  notice.textContent = text;
  clearTimeout(silence);
  silence = setTimeout(() => notice.replaceChildren(), 3000);
}

const KEYS = {
  "/": openFind,
  j: () => step(1),
  k: () => step(-1),
  n: () => byId("session") && moveFailure(1),
  p: () => byId("session") && moveFailure(-1),
  h: () => byId("session") && openHealth(),
  g: () => scrollTo({ top: 0, behavior: "instant" }),
  G: () => (byId("session") ? toTheEnd() : scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" })),
  "?": () => byId("keys").showModal(),
  t: toggleTheme,
};

function escape(event) {
  if (finding()) event.preventDefault(); // else it would clear the field first
  if (byId("keys").open) return; // it closes itself
  if (finding()) byId("find").close();
  else if (writing(event.target)) event.target.blur();
  else if (byId("session")) backToList();
}

function arrow(event) {
  const down = event.key === "ArrowDown";
  if (finding() && (event.target.id === "find-query" || event.target.matches(".hit"))) moveHit(down ? 1 : -1);
  else if (event.target.closest?.(".sessions") || (down && event.target.matches?.("#filters input"))) moveRow(down ? 1 : -1);
  else return;
  event.preventDefault();
}
