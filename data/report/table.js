// SPDX-License-Identifier: Apache-2.0
// The table of rows: those that the filters leave, sorted by a column, a page at a time.
"use strict";

// Browsers cannot scroll over an element of more than some ten million pixels.
const ROWS_ON_PAGE = 100000;
const ROW_HEIGHT = 26;

const WIDTHS = {
  Origin: 128,
  Result: 84,
  Evidence: 320,
  Rank: 110,
  "NPU Name": 360,
  "Bench Name": 360,
  Err_message: 520,
  Data_name: 360,
};
const WIDEST_NAME = 640;
const NARROWEST_NAME = 190; // where the columns beside it need the room
const WIDEST_RANK = 260;
const NAME_PADDING = 24;
const NAME_LIMIT = 300; // letters in an element; more than any column shows
const NUMBER_WIDTH = 124;
const TEXT_WIDTH = 150;
const EXPLAINING = ["NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape", "Err_message", "Evidence"];

// The columns keep the Python tool's names of the two sides, whatever devices they ran on.
function sideOf(name) {
  if (/^NPU[ _]/.test(name)) return " (NPU: the run under test)";
  return /^bench[ _]/i.test(name) ? " (Bench: the golden run)" : "";
}

class RowTable {
  constructor(box, { comparison, open, sorted }) {
    this.comparison = comparison;
    this.sorted = sorted;
    this.order = new Uint32Array(0);
    this.page = 0;
    this.sort = { column: null, down: true };
    this.all = false;
    this.head = element("div", { class: "head", role: "row" });
    box.append(this.head);
    new ResizeObserver(() => this.fit()).observe(box); // before the list's own, which draws the rows
    this.list = new LongList(box, {
      lineHeight: ROW_HEIGHT,
      line: (index) => this.line(this.first() + index),
      open: (index) => open(this.order[this.first() + index]),
    });
    this.pager = document.getElementById("pager");
    this.chooseColumns();
  }

  chooseColumns() {
    const ranks = this.comparison.ranks.filter((rank) => rank.rows > 0);
    const names = [...new Set(ranks.flatMap((rank) => rank.columns.map((column) => column.name)))];
    const metrics = names.filter((name) => ranks.some((rank) => WORST_METRICS[rank.mode].includes(name)));
    const checksums = names.filter((name) => name.endsWith(" MD5"));
    const judged = names.includes("Origin");
    const first = [...(judged ? ["Origin", "NPU Name", "Result"] : ["Result", "NPU Name"]), ...(this.comparison.ranks.length > 1 ? ["Rank"] : []), ...(judged ? ["Error"] : [])];
    this.beside = first.filter((name) => name !== "NPU Name");
    const usual = [...first, ...metrics, ...checksums, ...EXPLAINING.filter((name) => names.includes(name))];
    this.columns = this.all ? [...first, ...names.filter((name) => !first.includes(name))] : usual;
    this.numeric = new Set(["Error", ...metrics]);
    for (const side of ["NPU", "Bench"]) {
      for (const name of ["max", "min", "mean", "l2norm"]) this.numeric.add(`${side} ${name}`);
    }
    this.measureNames();
    this.fittedName = null;
    this.fit();
  }

  // Columns of names and ranks are as wide as the longest, within limits.
  measureNames() {
    const pen = document.createElement("canvas").getContext("2d");
    const probe = element("span", { class: "cell name", text: "x" });
    this.list.body.append(probe);
    pen.font = getComputedStyle(probe).font;
    probe.remove();
    const letter = pen.measureText("x").width;
    const widthOf = (length, least, most) => Math.min(Math.max(Math.ceil(length * letter) + NAME_PADDING, least), most);
    const longest = (measure) => this.comparison.ranks.reduce((most, rank) => Math.max(most, measure(rank)), 0);
    this.nameWidth = widthOf(longest((rank) => rank.longestName()), WIDTHS["NPU Name"], WIDEST_NAME);
    this.rankWidth = widthOf(longest((rank) => rank.label.length), WIDTHS.Rank, WIDEST_RANK);
  }

  // The name gives way to as many of the first columns as can be seen beside it.
  fit() {
    let room = this.list.box.clientWidth;
    const rooms = this.beside.map((name) => (room -= this.width(name)));
    const fitted = Math.min(this.nameWidth, rooms.findLast((one) => one >= NARROWEST_NAME) ?? NARROWEST_NAME);
    if (fitted === this.fittedName) return;
    this.fittedName = fitted;
    this.drawHead();
  }

  width(name) {
    if (name === "NPU Name") return this.fittedName;
    if (name === "Bench Name") return this.nameWidth;
    if (name === "Rank") return this.rankWidth;
    return WIDTHS[name] ?? (this.numeric.has(name) ? NUMBER_WIDTH : TEXT_WIDTH);
  }

  drawHead() {
    const cells = this.columns.map((name) => {
      const sorted = this.sort.column === name;
      const cell = element("button", {
        class: this.numeric.has(name) ? "cell number" : "cell",
        role: "columnheader",
        text: name,
        title: `Sort by ${name}${sideOf(name)}`,
        "aria-sort": sorted ? (this.sort.down ? "descending" : "ascending") : "none",
        onclick: () => this.sortBy(name),
      });
      cell.style.width = `${this.width(name)}px`;
      return cell;
    });
    this.head.replaceChildren(...cells);
    const whole = this.columns.reduce((sum, name) => sum + this.width(name), 0);
    this.head.style.width = `${whole}px`;
    this.list.body.style.width = `${whole}px`;
  }

  first() {
    return this.page * ROWS_ON_PAGE;
  }

  cell(rank, row, name) {
    if (name === "Result") {
      const verdict = VERDICTS[rank.verdicts[row]];
      const shownAs = rank.isOnlyGolden(row) ? "" : element("b", { class: `badge ${verdict}`, text: verdict });
      return element("span", { class: "cell", role: "gridcell" }, shownAs);
    }
    if (name === "Origin") return element("span", { class: "cell", role: "gridcell" }, badge(rank.grades[row]));
    const column = rank.byName.get(name);
    const isNumber = this.numeric.has(name);
    let text = name === "Rank" ? rank.label : rank.cell(row, name);
    if (name === "NPU Name" && rank.isOnlyGolden(row)) text = rank.name(row);
    const properties = { class: isNumber ? "cell number" : name.endsWith(" Name") ? "cell name" : "cell" };
    properties.title = text;
    if (isNumber && column) text = column.brief(row);
    if (name === "Err_message") {
      text = rank.messages(row).join(" ");
      properties.title = rank.messages(row);
    }
    if (!name.endsWith(" Name")) return element("span", { ...properties, text, role: "gridcell" });
    // Names differ at their ends: where the column is too narrow, it is the beginning that goes.
    return element("span", { ...properties, role: "gridcell" }, element("bdi", { dir: "ltr", text: tail(text, NAME_LIMIT) }));
  }

  line(index) {
    const { rank, row } = this.comparison.at(this.order[index]);
    const blamed = rank.groups[rank.groupOf[row]].blamed ? " blamed" : "";
    const made = element("div", { class: `row ${GRADES[rank.grades[row]].mark}${blamed}`, role: "row" });
    if (rank.errors !== null) tint(made, rank.errors[row], ...(rank.grades[row] >= BAD ? [7, 30] : [2, 14]));
    made.setAttribute("aria-rowindex", index + 1);
    for (const name of this.columns) {
      const cell = this.cell(rank, row, name);
      cell.style.width = `${this.width(name)}px`;
      made.append(cell);
    }
    return made;
  }

  // `passes(rank)` gives a mask of the rank's rows, or null if none passes.
  filter(passes) {
    const kept = new Uint32Array(this.comparison.rows);
    let length = 0;
    for (const rank of this.comparison.ranks) {
      const mask = passes(rank);
      if (mask === null) continue;
      const start = this.comparison.starts[rank.index];
      for (let row = 0; row < rank.rows; ++row) if (mask[row]) kept[length++] = start + row;
    }
    this.unsorted = kept.subarray(0, length);
    this.applySort();
  }

  sortBy(name) {
    if (this.sort.column !== name) {
      this.sort = { column: name, down: this.worstFirst(name) };
    } else if (this.sort.down === this.worstFirst(name)) {
      this.sort.down = !this.sort.down;
    } else {
      this.sort.column = null;
    }
    this.drawHead();
    this.applySort();
    this.sorted();
  }

  // As an address names it: a column, and `up` or `down`; from the next filtering on.
  sortAs(name, direction) {
    this.sort = { column: this.columns.includes(name) ? name : null, down: direction !== "up" };
    this.drawHead();
  }

  // A key that was typed elsewhere and means the rows.
  takeKey(event) {
    if (!["ArrowDown", "ArrowUp", "Enter"].includes(event.key) || event.shiftKey) return;
    if (event.key !== "Enter") this.list.box.focus({ preventScroll: true });
    this.list.take(event);
  }

  // The row that the cursor is on; null without one.
  current() {
    return this.list.active < 0 ? null : this.order[this.first() + this.list.active];
  }

  // The worst of a metric, the first of a text.
  worstFirst(name) {
    return this.numeric.has(name) || name === "Result" || name === "Origin";
  }

  applySort() {
    this.order = this.unsorted.slice();
    if (this.sort.column !== null) {
      const keys = this.sortKeys(this.sort.column);
      const sign = this.sort.down ? -1 : 1;
      // Cells without a key stand at the end either way; equal ones keep the order of execution.
      this.order.sort((a, b) => {
        const x = keys[a];
        const y = keys[b];
        if (x === y) return a - b;
        if (x !== x || y !== y) return x !== x ? (y !== y ? a - b : 1) : -1;
        return x < y ? -sign : sign;
      });
    }
    this.goToPage(0);
  }

  // One number a row; NaN: nothing to sort by. A number that is not finite is worse than any that is.
  sortKeys(name) {
    const keys = new Float64Array(this.comparison.rows);
    for (const rank of this.comparison.ranks) {
      const start = this.comparison.starts[rank.index];
      const key = this.sortKey(rank, name);
      for (let row = 0; row < rank.rows; ++row) keys[start + row] = key(row);
    }
    return keys;
  }

  sortKey(rank, name) {
    if (name === "Result") return (row) => rank.verdicts[row];
    if (name === "Origin") return (row) => rank.grades[row];
    if (name === "Rank") return () => rank.index;
    const column = rank.byName?.get(name);
    if (column === undefined) return () => NaN;
    if (this.numeric.has(name)) {
      const distance = name.endsWith(" diff");
      return (row) => {
        const value = column.number(row);
        if (value === undefined) return NaN;
        if (Number.isNaN(value)) return Infinity;
        if (!Number.isFinite(value)) return value < 0 && !distance ? -Number.MAX_VALUE : Number.MAX_VALUE;
        return distance ? Math.abs(value) : value;
      };
    }
    if (name.endsWith(" Name")) return this.nameKey(rank, name);
    return textKey(column);
  }

  nameKey(rank, name) {
    const texts = Array.from({ length: rank.rows }, (_, row) => rank.cell(row, name));
    const places = placesOf(texts);
    return (row) => places[row];
  }

  goToPage(page) {
    const pages = Math.max(1, Math.ceil(this.order.length / ROWS_ON_PAGE));
    this.page = Math.min(Math.max(page, 0), pages - 1);
    const length = Math.min(ROWS_ON_PAGE, this.order.length - this.first());
    this.list.box.scrollTop = 0;
    this.list.box.setAttribute("aria-rowcount", this.order.length);
    this.list.show(length);
    this.pager.hidden = pages === 1;
    const button = (text, label, to, dead) =>
      element("button", { text, "aria-label": label, onclick: () => this.goToPage(to), disabled: dead ? "" : undefined });
    const last = this.first() + length;
    this.pager.replaceChildren(
      button("\u2039", "Page before", this.page - 1, this.page === 0),
      element("span", { text: `${count(this.first() + 1)}\u2013${count(last)} of ${count(this.order.length)}` }),
      button("\u203a", "Next page", this.page + 1, this.page === pages - 1),
    );
  }

  // Brings a row into view if the filters let it through.
  reveal(id) {
    const place = this.order.indexOf(id);
    if (place < 0) {
      this.list.show(this.list.length);
      return;
    }
    const page = Math.floor(place / ROWS_ON_PAGE);
    if (page !== this.page) this.goToPage(page);
    this.list.reveal(place - this.first());
  }
}

// For each text its place among all of them in alphabetical order.
function placesOf(texts) {
  const order = texts.map((_, i) => i).sort((a, b) => (texts[a] < texts[b] ? -1 : texts[a] > texts[b] ? 1 : 0));
  const places = new Uint32Array(texts.length);
  order.forEach((index, place) => {
    const same = place > 0 && texts[order[place - 1]] === texts[index];
    places[index] = same ? places[order[place - 1]] : place;
  });
  return places;
}

function textKey(column) {
  const places = placesOf(column.texts);
  return (row) => (column.codes[row] === 0 ? NaN : places[column.codes[row] - 1]);
}
