// What is this page's own: an event is named by the command that shows it, and nothing is stored.

const keepLook = () => {};

function eventReference(id, event, what) {
  const shows = showCommand(id, event);
  return what ? [el("code", {}, shows), copyButton(shows, what)] : [el("code", {}, shows)];
}

const evidenceReferences = (ref, id, event) => [
  el("p", { class: "reference" }, el("code", {}, foreign(ref))),
  el("p", { class: "reference" }, eventReference(id, event, `the command that shows event ${event}`)),
];

// What a click on a mark of the timeline does, besides choosing it.
const openEvent = () => {};
