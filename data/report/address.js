// SPDX-License-Identifier: Apache-2.0
// The part of the page's address after the # holds the selection, so that a copied address shows the same again.
// An address comes from anyone: what it names is looked up, and left out if it is not there.
"use strict";

function readAddress() {
  const parts = new Map(location.hash.slice(1).split("&").map((part) => part.split("=")));
  const list = (name) => (parts.get(name) ?? "").split("+").map(unescaped);
  const all = (name) => (parts.has(name) ? list(name) : []);
  return { row: all("row"), sort: all("sort"), only: all("only"), within: all("within"), layer: all("layer"), box: all("box"), words: list("words")[0], view: list("view")[0], step: list("step")[0] };
}

function unescaped(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

// An address cannot contain half a pair of surrogates.
function escaped(text) {
  return encodeURIComponent(text.replace(/[\ud800-\udfff]/gu, "\ufffd"));
}

// Lists of texts, and texts; what is empty is left out.
function writeAddress(state) {
  const parts = Object.entries(state).filter(([, value]) => value.length > 0);
  const hash = parts.map(([name, value]) => `${name}=${[value].flat().map(escaped).join("+")}`).join("&");
  history.replaceState(null, "", `#${hash}`);
}
