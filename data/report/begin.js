// SPDX-License-Identifier: Apache-2.0
// From a file to a page that shows it, or tells why it cannot.
"use strict";

function begin(load) {
  setTheme(DARK.matches);
  by("loading").hidden = false;
  by("loading").textContent = "Unpacking \u2026";
  load().then(
    (report) => {
      window.report = report; // for the console, and for tests
      document.body.dataset.ready = String(Math.round(performance.now()));
    },
    (error) => {
      by("loading").hidden = false;
      by("loading").textContent = error.message;
      by("loading").classList.add("failed");
    },
  );
}
