// Load the page again every so many seconds. The button that names the time ("data-refresh") pauses it.
"use strict";
for (const button of document.querySelectorAll("button[data-refresh]")) {
  const paused = () => sessionStorage.getItem("refresh") === "paused";
  const show = () => { button.textContent = paused() ? "Refresh again" : "Pause refresh"; };
  button.hidden = false;
  button.addEventListener("click", () => {
    sessionStorage.setItem("refresh", paused() ? "" : "paused");
    show();
  });
  // A form that somebody fills in is not thrown away.
  const busy = () => document.activeElement?.closest("main form") !== null;
  setInterval(() => { if (!paused() && !document.hidden && !busy()) location.reload(); }, 1000 * button.dataset.refresh);
  show();
}
