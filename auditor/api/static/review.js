// Press the button, or follow the link, that names the key; then show the numbers that the labels give so far.
"use strict";
let left = false;
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, textarea, select")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const named = [...document.querySelectorAll("[data-key]")].find((one) => one.dataset.key.split(" ").includes(key));
  if (!named || left) return;
  event.preventDefault();
  // A second key before the next answer is there must not label this one again.
  left = true;
  named.click();
});
const list = document.querySelector("[data-live]");
if (list) {
  fetch(list.dataset.live, {headers: {accept: "application/json"}})
    .then((answer) => (answer.ok ? answer.json() : {lines: []}))
    .then((found) => {
      if (!found.lines.length) return;
      list.replaceChildren(...found.lines.map((line) => {
        const item = document.createElement("li");
        item.textContent = line;
        return item;
      }));
    })
    .catch(() => undefined);
}
