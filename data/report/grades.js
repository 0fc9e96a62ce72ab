// SPDX-License-Identifier: Apache-2.0
// The colour of a row shows where its error comes from and how large it is; without a diagnosis, it shows
// the verdict of the rules.
"use strict";

// The later the worse. `mark`: the class that has its colour.
const GRADES = [
  { name: "equal", mark: "equal", tells: "both sides are equal" },
  { name: "rounding", mark: "rounding", tells: "both sides differ by no more than rounding" },
  { name: "pass", mark: "pass", tells: "passes by the rules" },
  { name: "not compared", mark: "not-compared", tells: "there was nothing to measure, or no partner" },
  { name: "warning", mark: "warning", tells: "a warning by the rules" },
  { name: "only in golden", mark: "only-golden", tells: "the target has nothing like it" },
  { name: "unexplained", mark: "unexplained", tells: "more than rounding explains, and no rule could judge it" },
  { name: "propagated", mark: "propagated", tells: "the error came in with the inputs of the entry" },
  { name: "error", mark: "error", tells: "an error by the rules" },
  { name: "introduced", mark: "introduced", tells: "the error begins here: the inputs do not explain it" },
];
const GRADE = Object.fromEntries(GRADES.map(({ name }, index) => [name, index]));
const BAD = GRADE.warning; // from here on a row is worth a stop
const ONLY_IN_GOLDEN = 3; // in the place of a verdict

// 0 to 1, evenly by orders of magnitude: from the last bits of float32 to an error as large as the value.
function heatOf(error) {
  if (error === Infinity) return 1;
  return error > 0 ? Math.min(1, Math.max(0, 1 + Math.log10(error) / 8)) : 0;
}

// Stronger for larger errors; at least `least` and at most `most` percent of the colour.
function tint(made, error, least, most) {
  made.style.setProperty("--tint", `${Math.round(least + (most - least) * heatOf(error))}%`);
  return made;
}

function badge(grade, big = false) {
  const { name, mark, tells } = GRADES[grade];
  return element("b", { class: `badge ${mark}${big ? " big" : ""}`, text: name, title: tells });
}
