// SPDX-License-Identifier: Apache-2.0
// Text and elements. Names come from foreign files: they reach the page as text nodes only.
"use strict";

const VERDICTS = ["pass", "warning", "error", "only in golden"];
const DIRECTIONS = ["forward", "backward", "parameters_grad", "debug"];

// Control characters, and the marks that turn the writing direction or have no width, would make a name show
// as another one.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

const by = (id) => document.getElementById(id);
const DARK = matchMedia("(prefers-color-scheme: dark)");
const setTheme = (dark) => (document.documentElement.dataset.theme = dark ? "dark" : "light");

function shown(text) {
  return text.replace(UNSEEN, (mark) => "\\u" + mark.charCodeAt(0).toString(16).padStart(4, "0"));
}

// A title may be a list of lines.
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined) continue;
    if (name === "text") made.textContent = shown(String(value));
    else if (name === "class") made.className = value;
    else if (name === "title") made.title = [value].flat().map((line) => shown(String(line))).join("\n");
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function count(number) {
  return number.toLocaleString("en-US");
}

function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

// Six digits are enough for a reader; the exact number is in the panel and in the table's titles.
function briefly(number) {
  if (!Number.isFinite(number)) return Number.isNaN(number) ? "NaN" : number < 0 ? "-inf" : "inf";
  if (Number.isInteger(number) && Math.abs(number) < 1e15) return String(number);
  const short = Number(number.toPrecision(6));
  return Math.abs(short) < 1e-4 ? short.toExponential() : String(short);
}

// Names differ at their ends: the beginning is what goes where room is short.
function tail(text, length) {
  return text.length <= length ? text : "\u2026" + text.slice(text.length - length + 1);
}
