// SPDX-License-Identifier: Apache-2.0
// The panel of one row: all that is known of it, of its entry and of what ran before and after.
"use strict";

const NEIGHBOURS = 3;
const MOST_ROWS = 60; // of one entry that the panel lists
const FACTS = [
  ["dtype", "NPU Dtype", "Bench Dtype"],
  ["shape", "NPU Tensor Shape", "Bench Tensor Shape"],
  ["requires_grad", "NPU Requires_grad", "Bench Requires_grad"],
];
const STATISTICS = [
  ["max", "NPU max", "Bench max", "Max diff", "MaxRelativeErr"],
  ["min", "NPU min", "Bench min", "Min diff", "MinRelativeErr"],
  ["mean", "NPU mean", "Bench mean", "Mean diff", "MeanRelativeErr"],
  ["l2norm", "NPU l2norm", "Bench l2norm", "L2norm diff", "NormRelativeErr"],
  ["checksum", "NPU MD5", "BENCH MD5"],
];

class EntryPanel {
  constructor(box, { comparison, open, close, findings, sources }) {
    Object.assign(this, { box, comparison, open, close, findings, sources });
    this.id = null;
  }

  show(id) {
    this.id = id;
    const { rank, row } = this.comparison.at(id);
    const group = rank.groupOf[row];
    this.box.replaceChildren(
      this.header(rank, row, group),
      ...this.messages(rank, row),
      ...this.diagnosis(rank, row, group),
      this.sides(rank, row),
      ...this.metrics(rank, row),
      this.tensors(rank, row, group),
      this.stack(rank, row),
      this.neighbours(rank, group),
    );
    this.box.hidden = false;
    this.box.scrollTop = 0;
  }

  hide() {
    this.id = null;
    this.box.hidden = true;
    this.box.replaceChildren();
  }

  header(rank, row, group) {
    const judged = rank.errors !== null;
    const to = (text, label, found) =>
      element("button", {
        text,
        title: label,
        "aria-label": label,
        disabled: found === undefined ? "" : undefined,
        onclick: () => this.open(this.comparison.id(rank, found)),
      });
    const near = (step) => rank.groups[group + step]?.first;
    return element("header", {},
      element("div", { class: "buttons" },
        badge(rank.grades[row]),
        ...(judged && !rank.isOnlyGolden(row) ? [badge(GRADE[VERDICTS[rank.verdicts[row]]])] : []),
        element("span", { class: "grow muted", text: rank.label }),
        element("span", { class: "steps" },
          to("\u2190", "Entry before", near(-1)),
          to("\u2192", "Next entry", near(1)),
          to("Next bad", judged ? "Next row that differs by more than rounding" : "Next row with an error or warning", this.nextBad(rank, row)),
          element("button", { class: "close", text: "\u00d7", "aria-label": "Close", onclick: () => this.close() }),
        ),
      ),
      element("div", { class: "title" }, element("h2", { class: "name", text: rank.name(row), tabindex: "-1" }), copyButton(rank.name(row))),
    );
  }

  nextBad(rank, row) {
    for (let next = row + 1; next < rank.rows; ++next) if (rank.grades[next] >= BAD) return next;
    return undefined;
  }

  messages(rank, row) {
    const messages = rank.messages(row);
    if (messages.length === 0) return [];
    return [element("ul", { class: "messages" },
      ...messages.map((text) => element("li", { class: /^(error|warning):/.exec(text)?.[1], text })))];
  }

  // Where its error comes from, how large it might be, and what its entry is blamed for.
  diagnosis(rank, row, group) {
    if (rank.errors === null) return [];
    const [error, explained] = [rank.errors[row], rank.explained[row]];
    const { threshold } = this.comparison.overview.diagnosis;
    const lines = [["origin", `${GRADES[rank.grades[row]].name}: ${GRADES[rank.grades[row]].tells}`]];
    if (!Number.isNaN(error)) lines.push(["error", briefly(Number(error.toPrecision(6)))]);
    if (!Number.isNaN(explained)) lines.push(["explained", `up to ${briefly(Number(explained.toPrecision(2)))}, ${threshold} times the errors of the inputs and rounding`]);
    const found = this.findings.ofGroup(rank, group);
    const told = rank.byName.get("Evidence").text(rank.groups[group].first);
    if (found) lines.push([isEvidence(found) ? "evidence" : "hint", placeWords(found)], ...linesOf(found, this.sources));
    else if (told !== "") lines.push(["evidence", told]);
    return [element("section", {}, element("h3", { text: "Diagnosis" }), wordList(lines))];
  }

  // One line a property, one column a side; in statistics mode what they differ by beside them.
  sides(rank, row) {
    const differs = rank.byName.has("Max diff");
    const columns = ["", "target", "golden", ...(differs ? ["difference", "relative"] : [])];
    const lines = [...FACTS, ...STATISTICS].filter(([, column]) => rank.byName.has(column)).map(([label, ...names]) => {
      const [ours, theirs] = names.map((name) => rank.cell(row, name));
      const cells = (differs ? [0, 1, 2, 3] : [0, 1]).map((i) => this.value(rank, row, names[i]));
      return element("tr", { class: ours === theirs ? "" : "differs" }, element("th", { scope: "row", text: label }), ...cells);
    });
    const bench = rank.benchName(row);
    return element("section", {},
      element("h3", { text: "Both sides" }),
      bench === rank.name(row) || rank.isOnlyGolden(row) ? "" : element("p", { class: "muted" }, "against ", element("span", { class: "name", text: bench })),
      element("div", { class: "scroll" },
        element("table", {},
          element("thead", {}, element("tr", {}, ...columns.map((text) => element("th", { scope: "col", text })))),
          element("tbody", {}, ...lines))));
  }

  value(rank, row, name) {
    const column = name && rank.byName.get(name);
    if (!column) return element("td");
    return element("td", { text: column.brief(row), title: column.text(row) });
  }

  metrics(rank, row) {
    const names = rank.mode === "tensor" ? WORST_METRICS.tensor : [];
    if (names.length === 0) return [];
    const texts = names.map((name) => rank.byName.get(name).text(row));
    if (texts.every((text) => text === "unsupported")) return [];
    const cells = names.map((name, i) => element("div", {}, element("dt", { text: name }), element("dd", { text: texts[i] })));
    return [element("section", {}, element("h3", { text: "Metrics" }), element("dl", {}, ...cells))];
  }

  tensors(rank, row, group) {
    const { first, last } = rank.groups[group];
    const from = Math.max(first, Math.min(row - MOST_ROWS / 2, last - MOST_ROWS));
    const to = Math.min(last, from + MOST_ROWS);
    const name = rank.entryName(group);
    const items = [];
    for (let other = from; other < to; ++other) {
      const whole = rank.name(other);
      const text = whole.startsWith(name) && whole !== name ? whole.slice(name.length + 1) : whole;
      items.push(this.link(rank, other, text, rank.grades[other], other === row));
    }
    const title = `Inputs and outputs of ${name}`;
    const rest = last - first - (to - from);
    if (rest > 0) items.push(element("li", { class: "muted", text: `and ${plural(rest, "more row")}` }));
    return element("section", {}, element("h3", { text: title }), element("ul", { class: "links" }, ...items));
  }

  link(rank, row, text, grade, isThis) {
    const measure = this.measure(rank, row);
    return element("li", { class: GRADES[grade].mark },
      element("button", {
        class: "name",
        "aria-current": isThis ? "true" : undefined,
        onclick: () => this.open(this.comparison.id(rank, row)),
      }, element("span", { class: "dot" }), element("span", { class: "grow", text }), element("span", { class: "muted", text: measure })));
  }

  measure(rank, row) {
    const name = rank.errors === null ? WORST_METRICS[rank.mode][0] : "Error";
    return name === undefined ? "" : rank.byName.get(name).brief(row);
  }

  // The user's own frames show the place in the model; the frames between them and the call come after.
  stack(rank, row) {
    const frames = rank.frames(row);
    const list = (own) => frames.filter(([isOwn]) => Boolean(isOwn) === own).map(([, text]) => this.frame(text));
    const [own, others] = [list(true), list(false)];
    const parts = [element("h3", { text: "Called from" })];
    if (frames.length === 0) parts.push(element("p", { class: "muted", text: "No stack was recorded for this entry." }));
    if (own.length > 0) parts.push(element("ol", { class: "frames" }, ...own));
    if (others.length > 0) {
      parts.push(element("details", {}, element("summary", { text: plural(others.length, "frame") + " of the framework" }),
        element("ol", { class: "frames" }, ...others)));
    }
    return element("section", {}, ...parts);
  }

  frame(text) {
    const parts = /^File (.*), line ([0-9]+), in (.*?),? *\n([^]*)$/.exec(text);
    if (parts === null) return element("li", { class: "name", text: text.replaceAll("\n", " ") });
    const [, file, number, where, code] = parts;
    return element("li", {},
      element("div", { class: "muted" }, this.sources.link(file, number, `${file}:${number}`), element("span", { text: ` in ${where}` })),
      element("code", { text: code.trim() }));
  }

  neighbours(rank, group) {
    const items = [];
    for (let other = group - NEIGHBOURS; other <= group + NEIGHBOURS; ++other) {
      const found = rank.groups[other];
      if (found === undefined) continue;
      items.push(this.link(rank, found.first, rank.entryName(other), found.worst, other === group));
    }
    return element("section", {}, element("h3", { text: "Before and after" }), element("ul", { class: "links plain" }, ...items));
  }
}
