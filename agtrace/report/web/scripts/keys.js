// Keyboard shortcuts for everything; keys typed into a field, and the browser's own shortcuts, are left alone.

const writing = (element) =>
  element.matches?.("select, textarea, input:not([type=radio], [type=checkbox])") ?? false;
const finding = () => byId("find").open;

function step(number) {
  if (finding()) moveHit(number);
  else if (byId("session")) moveTurn(number);
  else moveRow(number);
}

// The next failed call on the page, from where one is.
function moveFailure(number) {
  const failed = [...document.querySelectorAll(".call.failed")];
  const here = document.querySelector(".entry.chosen");
  const top = here ? here.getBoundingClientRect().top : 80;
  const ahead = failed.filter((one) => (one.getBoundingClientRect().top - top) * number > 4);
  const next = number > 0 ? ahead[0] : ahead.at(-1);
  if (next) goToEvent(Number(next.id.slice(1)));
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

function escape(target) {
  if (byId("keys").open) return; // it closes itself
  if (finding()) {
    byId("find").close();
    return;
  }
  if (writing(target)) target.blur();
  else if (byId("session")) backToList();
}

function arrow(event) {
  const down = event.key === "ArrowDown";
  if (finding() && (event.target.id === "find-query" || event.target.matches(".hit"))) moveHit(down ? 1 : -1);
  else if (event.target.closest?.(".sessions") || (down && event.target.matches?.("#filters input"))) moveRow(down ? 1 : -1);
  else return;
  event.preventDefault();
}

function startKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape") {
      if (finding()) event.preventDefault(); // else it would clear the field first
      escape(event.target);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") arrow(event);
    else if (!writing(event.target) && !byId("keys").open && KEYS[event.key]) {
      event.preventDefault();
      KEYS[event.key]();
    }
  });
  byId("show-keys").addEventListener("click", KEYS["?"]);
}
