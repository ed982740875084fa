// The keys of the report, and what they do.

const inSession = () => !byId("session").hidden;

function escape({ target }) {
  if (byId("keys").open) return;
  if (inSession()) leaveSession();
  else if (target.id === "search" && target.value) {
    target.value = "";
    refresh();
  } else target.blur();
}

function step(number) {
  if (inSession())
    byId("session")
      .querySelector(number > 0 ? ".back .next" : ".back .previous")
      ?.click();
  else moveRow(number);
}

const KEYS = {
  "/": () => {
    if (inSession()) {
      goTo("#sessions");
      showReport();
    }
    byId("search").focus();
  },
  j: () => step(1),
  k: () => step(-1),
  "?": () => byId("keys").showModal(),
  t: toggleTheme,
};

function arrow(event) {
  const list = event.target.closest?.(".sessions");
  const fromSearch = event.target.id === "search" && event.key === "ArrowDown";
  if (!list && !fromSearch) return;
  event.preventDefault();
  moveRow(event.key === "ArrowDown" ? 1 : -1);
}

startKeys();
