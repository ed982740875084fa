// Buttons that copy a text of the page.

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  const source = byId(button.dataset.copy);
  copy(button, source.textContent, source);
});
