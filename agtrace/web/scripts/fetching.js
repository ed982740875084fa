// Parts of pages from the server. It is the only place where text becomes elements, and only what the server made does.

const ours = globalThis.trustedTypes?.createPolicy("agtrace", { createHTML: (text) => text }) ?? { createHTML: (text) => text };

class Refused extends Error {}

// The elements of a part of a page. Throws `Refused` with the status, or what `fetch` throws.
async function part(address, signal) {
  const answer = await fetch(address, { signal, credentials: "same-origin", headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Refused(answer.status);
  return elements(await answer.text());
}

function elements(text) {
  const made = new DOMParser().parseFromString(ours.createHTML(text), "text/html");
  const found = document.createDocumentFragment();
  found.append(...made.body.childNodes);
  return found;
}
