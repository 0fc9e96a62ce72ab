// SPDX-License-Identifier: Apache-2.0
// Files and lines as links into an editor. They are plain text until the reader chooses one: a path is often that of
// another machine.
"use strict";

const EDITOR_KEY = "msprobe-editor";
const EDITORS = {
  off: { name: "off", address: () => null },
  vscode: { name: "VS Code", address: (path, line) => `vscode://file${path}:${line}` },
  idea: { name: "IDEA", address: (path, line) => `idea://open?file=${path}&line=${line}` },
};

// A file that was opened from a disk may have no storage.
function storedEditor() {
  try {
    return localStorage.getItem(EDITOR_KEY);
  } catch {
    return null;
  }
}

class Sources {
  constructor(menu) {
    this.menu = menu;
    menu.replaceChildren(...Object.entries(EDITORS).map(([key, { name }]) => element("option", { value: key, text: name })));
    menu.value = Object.hasOwn(EDITORS, storedEditor()) ? storedEditor() : "off";
    menu.addEventListener("change", () => this.choose());
  }

  choose() {
    try {
      localStorage.setItem(EDITOR_KEY, this.menu.value);
    } catch {
      // It lasts as long as the page.
    }
    for (const link of document.querySelectorAll(".source")) this.lead(link);
  }

  // Nothing of a path gets out of its part of the address. Relative ones lead nowhere.
  lead(link) {
    const { file, line } = link.dataset;
    const path = file.replaceAll("\\", "/").replace(/^(?=[A-Za-z]:\/)/, "/");
    const address = path.startsWith("/") ? EDITORS[this.menu.value].address(path.split("/").map(escaped).join("/"), line) : null;
    if (address === null) link.removeAttribute("href");
    else link.href = address;
  }

  link(file, line, text) {
    const made = element("a", { class: "source", "data-file": file, "data-line": line, text });
    this.lead(made);
    return made;
  }

  // `FILE, line N, in FUNCTION: CODE`, as the diagnosis has it.
  place(text) {
    const [place, file, line] = /^(.*?), line ([0-9]+)/s.exec(text) ?? [];
    if (place === undefined) return [element("span", { text })];
    return [this.link(file, line, place), element("span", { text: `${text.slice(place.length)} ` }), copyButton(`${file}:${line}`)];
  }
}
