// SPDX-License-Identifier: Apache-2.0
// Puts the page together: the quantity that is shown, the view that map and curves share, and what is chosen.
"use strict";

const MODES = {
  usual: "against its usual",
  value: "by size",
  apart: "run 2 against run 1",
};
const PREFERRED = ["grad_reduced", "grad_unreduced", "actv", "actv_grad"];

class Report {
  constructor(overview, curves) {
    this.overview = overview;
    this.two = overview.runs.length > 1;
    this.loaded = new Map();
    this.blocks = overview.blocks;
    this.ranks = [...new Set(this.blocks.map(({ rank }) => rank))];
    this.quantities = [...new Set(this.blocks.map(({ quantity }) => quantity))].sort((a, b) => phaseOf(a) - phaseOf(b));
    this.chosen = null;
    this.words = [];
    this.view = new View(() => this.draw());
    const all = this.blocks.flatMap(({ steps, width }) => [steps[0], steps.at(-1) + width]);
    this.view.steps = [Math.min(...all), Math.max(...all)];
    this.view.x = [...this.view.steps];
    this.heat = new Heat(by("heat"), { view: this.view, pick: (row, step) => this.choose(row, step), hover: (found) => this.tell(found) });
    const atStep = { hover: (step) => this.ruler(step), pick: (step) => this.choose(this.chosen.row, step) };
    this.course = new Course(by("course"), { view: this.view, label: "The row that is chosen", ...atStep });
    this.curves = curves;
    this.loss = curves.length > 0 ? new Course(by("loss"), { view: this.view, label: "Loss", ...atStep }) : null;
    by("loss").hidden = this.loss === null;
    this.events = new Events(by("list"), { overview, open: (event) => this.goTo(event) });
    this.showHead();
    this.showChoices();
    this.listen();
  }

  showHead() {
    const { headline: [text, more, grade], runs, notes, outbreaks, version } = this.overview;
    const words = { error: this.two ? "parted" : "trouble", warning: "look", pass: "calm" };
    by("verdict").replaceChildren(element("span", { class: `badge big ${grade}`, text: words[grade] }), element("span", { text }));
    by("more").textContent = shown(more);
    by("notes").replaceChildren(
      ...runs.map((path, run) => element("li", {}, this.two ? element("span", { class: `run${run + 1}`, text: `\u2015 run ${run + 1}: ` }) : "",
        element("span", { class: "name", text: path }), this.two && outbreaks[run] ? element("span", { text: `. ${outbreaks[run]}` }) : "")),
      element("li", { text: `${count(this.overview.series)} series, steps ${count(this.view.steps[0])} to ${count(this.view.steps[1] - 1)}` }),
      ...notes.map((note) => element("li", { class: "note", text: note })));
    by("made-by").textContent = `msprobe ${version}`;
  }

  showChoices() {
    const troubled = new Map();
    for (const { block } of this.events.all) troubled.set(this.blocks[block].quantity, (troubled.get(this.blocks[block].quantity) ?? 0) + 1);
    by("quantities").replaceChildren(...this.quantities.map((name) => {
      const number = troubled.get(name) ?? 0;
      return element("button", { class: "chip", "data-quantity": name, "aria-pressed": "false", title: number > 0 ? plural(number, "event") : "nothing stands out", onclick: () => this.showBlock(this.blockOf(name, this.block.rank)) },
        element("span", { text: name }), number > 0 ? element("span", { class: "tally", text: count(number) }) : "");
    }));
    by("rank").replaceChildren(...this.ranks.map((rank) => element("option", { text: rank })));
    by("ranks").hidden = this.ranks.length === 1;
    const modes = Object.entries(MODES).filter(([mode]) => this.two || mode !== "apart");
    by("mode").replaceChildren(...(this.two ? modes.reverse() : modes).flatMap(([mode, text]) => (
      this.two && mode !== "apart" ? [0, 1].map((run) => element("option", { value: `${mode}-${run}`, text: `run ${run + 1}: ${text}` })) : [element("option", { value: `${mode}-0`, text })])));
  }

  // The block of a quantity on the rank that is looked at, or on any.
  blockOf(quantity, rank) {
    const exact = this.blocks.findIndex((block) => block.quantity === quantity && block.rank === rank);
    return exact >= 0 ? exact : this.blocks.findIndex((block) => block.quantity === quantity);
  }

  async start() {
    const first = this.events.first();
    if (first >= 0) {
      this.events.list.reveal(first);
      await this.goTo(this.events.all[first]);
    } else {
      const quantity = PREFERRED.find((name) => this.quantities.includes(name)) ?? this.quantities[0];
      await this.showBlock(this.blockOf(quantity, this.ranks[0]));
    }
  }

  async showBlock(index, statistic = by("statistic").value) {
    const block = this.blocks[index];
    const at = Math.max(0, block.statistics.indexOf(statistic));
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const key = `${index}-${at}`;
    if (!this.loaded.has(key)) this.loaded.set(key, Cells.load(index, at, block, this.overview.runs.length));
    const cells = await this.loaded.get(key);
    if (turn !== this.turn) return false;
    const chosen = this.index === index ? this.chosen : this.chosenIn(index);
    this.index = index;
    this.block = block;
    this.cells = cells;
    this.chosen = this.heat.chosen = chosen;
    by("statistic").replaceChildren(...block.statistics.map((name) => element("option", { text: name })));
    by("statistic").value = block.statistics[at];
    by("rank").value = block.rank;
    for (const chip of by("quantities").children) chip.setAttribute("aria-pressed", String(chip.dataset.quantity === block.quantity));
    this.showRows();
    return true;
  }

  // The same tensor, or one of the same module, or what happened there first.
  chosenIn(index) {
    const { names } = this.blocks[index];
    const name = this.chosen ? this.block.names[this.chosen.row] : null;
    const module = name?.slice(0, name.lastIndexOf("."));
    const row = [(one) => one === name, (one) => one.slice(0, one.lastIndexOf(".")) === module].map((test) => names.findIndex(test)).find((found) => found >= 0);
    if (name !== null && row !== undefined) return { row, step: this.chosen.step };
    const first = this.events.all.find(({ block }) => block === index);
    return first ? { row: first.row, step: first.step } : { row: 0, step: this.blocks[index].steps.at(-1) };
  }

  showRows() {
    const { block, cells } = this;
    const [mode, run] = by("mode").value.split("-");
    const order = block.names.map((_, row) => row).filter((row) => this.words.every((word) => block.names[row].toLowerCase().includes(word)));
    const whole = this.view.y[1] - this.view.y[0] >= this.view.rows;
    this.heat.show(cells, order, this.marksOf(cells.statistic, mode, Number(run)), this.alertsOf(Number(run)), mode, Number(run), this.overview.partsAt);
    if (whole) this.view.y = [0, Math.max(1, order.length)];
    this.showLegend(mode);
    this.showCourse();
    this.tell(null);
    this.draw();
  }

  // One a row: the first.
  marksOf(statistic, mode, run) {
    const first = new Map();
    for (const [row, of, step, kind, whose] of this.block.marks) {
      const isPair = kind === "parted" || kind === "passing";
      if (of !== statistic || isPair !== (this.two && mode === "apart") || (!isPair && whose !== run)) continue;
      if (!(first.get(row)?.[1] <= step)) first.set(row, [row, step, kind]);
    }
    return [...first.values()];
  }

  alertsOf(run) {
    return this.events.all.filter((one) => one.block === this.index && one.kind === "alert" && one.run === run).flatMap(({ row, steps }) => steps.map((step) => [row, step]));
  }

  showLegend(mode) {
    const low = { usual: "as usual", value: "small", apart: "within its fluctuation" }[mode];
    const high = { usual: "128 times", value: "large", apart: "1,500 fluctuations" }[mode];
    const key = (mark, text, sign = "") => element("span", {}, element("i", { class: mark, text: sign }), text);
    by("legend").replaceChildren(
      element("span", {}, low, element("i", { class: `ramp ${mode}` }), high),
      ...(mode === "usual" ? [key("ramp below", "below")] : []),
      key("box worst", mode === "apart" ? "NaN or inf in one run" : "NaN"),
      ...(mode === "apart" ? [] : [key("box endless", "inf")]),
      key("box", "nothing recorded"),
      key("key diamond", mode === "apart" ? "here it parts" : "here it blows up"),
      key("key alert", "alert of the monitor", "\u25b2"));
  }

  // Both numbers of a bin are drawn.
  rowLines(row) {
    const { cells, block } = this;
    const perStep = block.width > 1 ? 2 : 1;
    return this.overview.runs.map((_, run) => {
      const steps = [];
      const values = [];
      for (let column = 0; column < cells.columns; ++column) {
        const value = cells.value(run, row, column);
        if (value === undefined) continue;
        steps.push(block.steps[Math.floor(column / perStep)]);
        values.push(value);
      }
      return { steps, values: Float64Array.from(values), run, name: this.two ? `run ${run + 1}` : "" };
    });
  }

  showCourse() {
    const { row } = this.chosen;
    const marks = this.events.all.filter((one) => one.block === this.index && one.row === row).flatMap(({ step, steps, kind }) => (steps ?? [step]).map((at) => [at, kind]));
    this.course.show(`${this.cells.statistic} of ${this.block.quantity}, ${this.heat.label(row)}`, this.rowLines(row), marks, this.overview.partsAt);
  }

  showLoss() {
    const [first] = this.curves;
    const lines = first.runs.map((values, run) => {
      const kept = first.steps.map((_, i) => i).filter((i) => values.there[i] === 1);
      return { steps: kept.map((i) => first.steps[i]), values: Float64Array.from(kept, (i) => values.numbers[i]), run, name: this.two ? `run ${run + 1}` : "" };
    });
    this.loss.show(first.name, lines, [], this.overview.partsAt);
  }

  async goTo(event) {
    const pair = event.kind === "parted" || event.kind === "passing";
    if (this.two) by("mode").value = pair ? "apart-0" : `usual-${event.run}`;
    this.words = [];
    by("search").value = "";
    if (!(await this.showBlock(event.block, event.statistic))) return;
    this.choose(event.row, event.step);
    this.heat.choose(event.row, event.step);
  }

  choose(row, step) {
    this.chosen = this.heat.chosen = { row, step };
    this.showCourse();
    this.draw();
    this.tell({ row, step });
  }

  number(run, row, step) {
    const column = this.heat.columnAt(step) * (this.block.width > 1 ? 2 : 1);
    const values = this.block.width > 1 ? [column, column + 1].map((one) => this.cells.value(run, row, one)) : [this.cells.value(run, row, column)];
    if (values[0] === undefined) return "nothing recorded";
    return values.map((value) => briefly(Number(value.toPrecision(4)))).join(" to ");
  }

  tell(found) {
    found ??= this.chosen;
    this.ruler(found?.step ?? null);
    if (!found || this.cells === undefined) {
      by("told").textContent = "";
      return;
    }
    const { row, step } = found;
    const numbers = this.overview.runs.map((_, run) => (this.two ? `run ${run + 1}: ` : "") + this.number(run, row, step)).join(", ");
    const steps = this.block.width > 1 ? `steps ${count(step)} and on` : `step ${count(step)}`;
    by("told").textContent = shown(`${steps}, ${this.heat.label(row)}: ${numbers}`);
  }

  ruler(step) {
    if (this.course.step === step) return;
    this.course.step = step;
    if (this.loss) this.loss.step = step;
    cancelAnimationFrame(this.ruled);
    this.ruled = requestAnimationFrame(() => {
      this.course.draw(this.color);
      this.loss?.draw(this.color);
    });
  }

  // Once a frame, however much changes.
  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.drawNow();
    });
  }

  drawNow() {
    if (this.cells === undefined) return;
    const style = getComputedStyle(document.documentElement);
    const known = new Map();
    this.color = (name) => {
      if (!known.has(name)) known.set(name, style.getPropertyValue(`--${name}`).trim());
      return known.get(name);
    };
    this.view.names = Math.max(130, Math.min(250, Math.round(by("map").clientWidth * 0.24)));
    this.heat.draw(this.color, document.documentElement.dataset.theme === "dark");
    this.course.draw(this.color);
    this.loss?.draw(this.color);
    this.keepAddress();
  }

  listen() {
    by("statistic").addEventListener("change", () => this.showBlock(this.index));
    by("mode").addEventListener("change", () => this.showRows());
    by("rank").addEventListener("change", () => this.showBlock(this.blockOf(this.block.quantity, this.ranks[by("rank").selectedIndex])));
    by("search").addEventListener("input", () => {
      this.words = by("search").value.toLowerCase().split(/\s+/).filter(Boolean);
      this.view.y = [0, this.view.rows];
      this.showRows();
    });
    const middle = () => (this.view.x[0] + this.view.x[1]) / 2;
    by("closer").addEventListener("click", () => this.view.zoom("x", 0.5, this.chosen?.step ?? middle()));
    by("farther").addEventListener("click", () => this.view.zoom("x", 2, this.chosen?.step ?? middle()));
    by("all").addEventListener("click", () => this.view.reset());
    by("theme").addEventListener("click", () => this.showTheme(document.documentElement.dataset.theme === "light"));
    DARK.addEventListener("change", () => this.showTheme(DARK.matches));
    document.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === by("search")) {
      if (event.key === "Escape") {
        by("search").value = "";
        by("search").dispatchEvent(new Event("input"));
        this.heat.canvas.focus();
      }
      return;
    }
    if (event.target.tagName === "SELECT") return;
    if (event.key === "n") this.events.go(1);
    else if (event.key === "p") this.events.go(-1);
    else if (event.key === "/") by("search").focus();
    else if (event.target === document.body) {
      this.heat.key(event);
      return;
    } else return;
    event.preventDefault();
  }

  // Keeps the visible part in the address, so that a copied address shows the same again.
  keepAddress() {
    const { block, cells, chosen, view } = this;
    const state = { q: block.quantity, r: block.rank, s: cells.statistic, m: by("mode").value, x: view.x.map(Math.round).join("-") };
    if (chosen) state.row = `${chosen.row}-${chosen.step}`;
    history.replaceState(null, "", `#${new URLSearchParams(state)}`);
  }

  async goToAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const index = this.blockOf(wanted.get("q"), Number(wanted.get("r")));
    if (index < 0) return this.start();
    if ([...by("mode").options].some(({ value }) => value === wanted.get("m"))) by("mode").value = wanted.get("m");
    await this.showBlock(index, wanted.get("s"));
    const [row, step] = (wanted.get("row") ?? "").split("-").map(Number);
    if (row < this.block.names.length && Number.isFinite(step)) this.choose(row, step);
    const [from, to] = (wanted.get("x") ?? "").split("-").map(Number);
    if (to > from) this.view.show("x", from, to - from);
    return undefined;
  }

  showTheme(dark) {
    setTheme(dark);
    this.draw();
  }
}

async function loadCurve(curve, index, runs) {
  const values = new Float64Array(await unpack(`curve-${index}`));
  const size = curve.steps.length;
  return { ...curve, runs: Array.from({ length: runs }, (_, run) => {
    const from = 2 * run * size;
    return { numbers: values.subarray(from, from + size), there: values.subarray(from + size, from + 2 * size) };
  }) };
}

async function load() {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser cannot unpack the report: it lacks DecompressionStream. Chrome 103, Firefox 113, Safari 16.4 and later have it.");
  }
  const overview = await unpackJson("overview");
  const curves = await Promise.all(overview.curves.map((curve, index) => loadCurve(curve, index, overview.runs.length)));
  document.body.classList.remove("is-loading");
  by("loading").hidden = true;
  const report = new Report(overview, curves);
  if (report.loss) report.showLoss();
  await report.goToAddress();
  report.drawNow();
  return report;
}

begin(load);
