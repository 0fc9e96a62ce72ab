// SPDX-License-Identifier: Apache-2.0
// Names go to the clipboard as the page shows them: invisible characters are spelt out, because users paste
// names into a shell.
"use strict";

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(shown(text));
    return true;
  } catch {
    return copyBySelection(shown(text));
  }
}

// Browsers deny the clipboard to some pages that are opened from files.
function copyBySelection(text) {
  const field = element("textarea", { class: "aside", "aria-hidden": "true" });
  const focused = document.activeElement;
  field.value = text;
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  focused?.focus({ preventScroll: true });
  return copied;
}

async function copyAndTell(text) {
  const said = document.getElementById("said");
  said.textContent = shown((await copyText(text)) ? `copied ${text}` : "this browser does not let the page copy");
  said.hidden = false;
  clearTimeout(copyAndTell.timer);
  copyAndTell.timer = setTimeout(() => (said.hidden = true), 2500);
}

function copyButton(text) {
  return element("button", { class: "copy", title: `Copy ${text}`, "aria-label": `Copy ${text}`, text: "copy", onclick: () => copyAndTell(text) });
}
