// SPDX-License-Identifier: Apache-2.0
// What is selected stands behind the # of the page's address, so that a copied address shows the same again.
// An address comes from anyone: what it names is looked up, and left out if it is not there.
"use strict";

function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const list = (name) => (parts.get(name) ?? "").split(" ").filter(Boolean).map((one) => {
    try {
      return decodeURIComponent(one);
    } catch {
      return "";
    }
  });
  return { row: list("row"), sort: list("sort"), hide: list("hide"), within: list("within"), layer: list("layer"), words: parts.get("words") ?? "", view: parts.get("view") ?? "" };
}

// Half a pair of surrogates cannot stand in an address.
function escaped(text) {
  return encodeURIComponent(text.replace(/[\ud800-\udfff]/gu, "\ufffd"));
}

// Lists of texts, and texts; what is empty is left out.
function writeAddress(state) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    const text = Array.isArray(value) ? value.map(escaped).join(" ") : value;
    if (text) parts.set(name, text);
  }
  history.replaceState(null, "", `#${parts}`);
}
