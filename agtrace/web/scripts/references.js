// What is these pages' own: an event is named by a link to its place, and the browser remembers the chosen look.

function keepLook(chosen) {
  try {
    localStorage.setItem("agtrace-theme", chosen);
  } catch {
    // it holds for this page only
  }
}

const eventPath = (id, event) => `/s/${encodeURIComponent(id)}?at=${event}#e${event}`;

function eventReference(id, event) {
  return [el("a", { href: eventPath(id, event), "data-event": isHere(id) ? event : null }, `Event ${plain(event)}`)];
}

const evidenceReferences = (_ref, id, event) => [el("p", { class: "reference" }, eventReference(id, event))];

const isHere = (id) => byId("session")?.dataset.id === id;

// What a click on a mark of the timeline does, besides choosing it.
const openEvent = (_id, event) => goToEvent(event);
