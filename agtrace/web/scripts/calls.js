// Calls that load what they unfold to when they are opened.

async function loadInto(details, body) {
  const address = details.dataset.load;
  delete details.dataset.load;
  body.setAttribute("aria-busy", "true");
  try {
    body.replaceChildren(await part(address));
  } catch {
    details.dataset.load = address;
    body.replaceChildren(el("p", { class: "none" }, "This can’t be loaded now: close it and try again."));
  }
  body.removeAttribute("aria-busy");
}

function startCalls() {
  document.addEventListener(
    "toggle",
    (event) => {
      const details = event.target;
      if (details.open && details.matches("details.call") && details.dataset.load)
        loadInto(details, details.querySelector(".body"));
    },
    true,
  );
}
