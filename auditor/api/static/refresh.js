// Bring a page up to date every so many seconds, in place. The button that names the time ("data-refresh") pauses it.
"use strict";
const refreshButton = () => document.querySelector("button[data-refresh]");
const paused = () => sessionStorage.getItem("refresh") === "paused";
const showButton = (text) => {
  const button = refreshButton();
  if (button === null) return;
  button.hidden = false;
  button.textContent = text ?? (paused() ? "Refresh again" : "Pause refresh");
};

// Nothing is replaced under the hand of somebody who points, types, fills in a form or has marked text, nor while the
// browser already loads another page: a click on a link that is replaced meanwhile would be lost.
const QUIET_MS = 1500;
let usedAt = -QUIET_MS;
let leaving = false;
for (const kind of ["pointermove", "pointerdown", "keydown", "wheel"]) {
  addEventListener(kind, () => { usedAt = performance.now(); }, { capture: true, passive: true });
}
addEventListener("beforeunload", () => { leaving = true; });
addEventListener("pageshow", () => { leaving = false; });
const isFilled = (input) => input.value !== input.defaultValue || input.checked !== input.defaultChecked;
const busy = () =>
  paused() || leaving || document.hidden || performance.now() - usedAt < QUIET_MS
  || document.activeElement?.closest("main form")
  || [...document.querySelectorAll("main input")].some(isFilled) || String(getSelection()) !== "";

const refresh = async () => {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (busy()) return;
  // Another page: the session has ended, or there is something to show at last.
  if (answer.url !== location.href.split("#")[0]) { location.replace(answer.url); return; }
  const [shown, next] = [document.querySelector("main"), page.querySelector("main")];
  const open = [...shown.querySelectorAll("details")].map((details) => details.open);
  const focused = [...shown.querySelectorAll("a, button, [tabindex]")].indexOf(document.activeElement);
  next.querySelectorAll("details").forEach((details, place) => { details.open = open[place] ?? details.open; });
  shown.replaceWith(document.adoptNode(next));
  if (focused >= 0) next.querySelectorAll("a, button, [tabindex]")[focused]?.focus({ preventScroll: true });
  document.title = page.title;
  showButton();
};

const wait = () => {
  const button = refreshButton();
  if (button === null) return;
  setTimeout(() => {
    (busy() ? Promise.resolve() : refresh().catch(() => showButton("Not refreshed: the console does not answer")))
      .finally(wait);
  }, 1000 * button.dataset.refresh);
};

document.addEventListener("click", (event) => {
  if (!event.target.closest("button[data-refresh]")) return;
  sessionStorage.setItem("refresh", paused() ? "" : "paused");
  showButton();
});
showButton();
wait();
