// SPDX-License-Identifier: Apache-2.0
// Layers by ranks: each cell has the colour of the worst row of a layer on a rank, stronger for larger errors.
"use strict";

const MAP_LINE = 18;
const MAP_LINES = 36; // unfolded at first
const LEAST_CELL = 3; // pixels; where there is room for less, neighbours share a cell

class LayerMap {
  // `choose(layer, ranks)` filters; `ranks` null: on all of them.
  constructor(box, { comparison, choose }) {
    this.comparison = comparison;
    this.choose = choose;
    this.layers = new Layers(comparison);
    this.layers.unfold(MAP_LINES);
    this.chosen = null;
    this.column = -1; // of the cursor; -1: the name of the layer
    this.head = element("div", { class: "head map-head", "aria-hidden": "true" });
    this.told = element("p", { class: "muted", role: "status" });
    const grid = element("div", { class: "grid", id: "map-grid", role: "grid", tabindex: "0", "aria-label": "Layers by ranks: arrows move, Enter filters, Space unfolds" });
    box.append(this.told, grid);
    grid.append(this.head);
    this.grid = grid;
    this.list = new LongList(grid, {
      lineHeight: MAP_LINE,
      line: (index) => this.line(this.shown[index], index),
      open: (index, event) => this.pick(index, event),
      move: (event, index) => this.move(event, index),
      moved: () => this.tell(),
    });
    grid.addEventListener("pointermove", (event) => this.point(event));
    grid.addEventListener("pointerleave", () => this.tell());
    new ResizeObserver(() => this.draw()).observe(grid);
    this.measure();
    this.show();
    this.tell();
  }

  show(active = -1) {
    this.shown = this.layers.lines();
    this.list.show(this.shown.length, active);
  }

  draw() {
    this.measure();
    this.drawHead();
    this.list.draw();
    if (this.list.active < 0 && this.grid.clientHeight > 0) this.goToBorn();
  }

  // Goes to the place to inspect first; a layer comes after the modules around it.
  goToBorn() {
    const isIntroduced = (layer) => layer.introduced.includes(1);
    this.list.reveal(this.shown.findIndex((layer) => isIntroduced(layer) && !(layer.open && layer.children.some(isIntroduced))));
  }

  // Ranks from first to last in each cell.
  measure() {
    const width = this.grid.clientWidth;
    this.names = Math.min(240, Math.max(110, Math.round(width * 0.3)));
    this.room = Math.max(LEAST_CELL, width - this.names - 8);
    const ranks = this.comparison.ranks.length;
    const together = Math.ceil((ranks * LEAST_CELL) / this.room);
    this.cells = [];
    for (let first = 0; first < ranks; first += together) {
      this.cells.push({ first, last: Math.min(ranks, first + together) - 1 });
    }
    this.across = Math.min(96, this.room / this.cells.length);
    this.column = Math.min(this.column, this.cells.length - 1);
  }

  drawHead() {
    const labels = this.cells.map((cell) => this.rankNames(cell));
    const room = Math.max(1, Math.ceil(64 / this.across));
    const cells = labels.filter((_, at) => at % room === 0 && (at === 0 || at + room <= labels.length)).map((text, place) => {
      const made = element("span", { class: "cell", text: tail(text, 14), title: text });
      made.style.left = `${this.names + place * room * this.across}px`;
      made.style.width = `${room * this.across}px`;
      return made;
    });
    this.head.replaceChildren(...cells);
  }

  rankNames({ first, last }) {
    const { ranks } = this.comparison;
    const label = (index) => this.comparison.briefLabel(ranks[index]);
    return first === last ? label(first) : `${label(first)} \u2026 ${label(last)}`;
  }

  // The worst of the ranks of a cell.
  worst(layer, { first, last }) {
    let [grade, error, introduced] = [-1, 0, false];
    for (let rank = first; rank <= last; ++rank) {
      grade = Math.max(grade, layer.grades[rank]);
      error = Math.max(error, layer.errors[rank]);
      introduced ||= layer.introduced[rank] === 1;
    }
    return { grade, error, introduced };
  }

  line(layer, index) {
    const unfolds = layer.children.length > 0;
    const made = element("div", { class: "layer", role: "row", "aria-level": layer.depth + 1, "aria-expanded": unfolds ? String(layer.open) : undefined });
    const name = element("span", { class: "names", role: "rowheader", title: layer.path },
      element("span", { class: "twist", text: unfolds ? (layer.open ? "\u25be" : "\u25b8") : "" }),
      element("span", { class: "label name", text: layer.label }));
    name.style.width = `${this.names}px`;
    name.style.paddingLeft = `${layer.depth * 11}px`;
    const canvas = element("canvas", { role: "gridcell" });
    made.append(name, canvas);
    this.paint(canvas, layer, index);
    return made;
  }

  paint(canvas, layer, index) {
    const ratio = window.devicePixelRatio || 1;
    const width = this.across * this.cells.length;
    canvas.width = Math.ceil(width * ratio);
    canvas.height = MAP_LINE * ratio;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${MAP_LINE}px`;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(`--${name}`).trim();
    const gap = this.across > 6 ? 1 : 0;
    for (const [at, cell] of this.cells.entries()) {
      const { grade, error, introduced } = this.worst(layer, cell);
      const x = at * this.across;
      if (grade >= 0) {
        context.fillStyle = color(introduced ? "introduced" : GRADES[grade].mark);
        context.globalAlpha = introduced ? 1 : grade >= BAD ? 0.45 + 0.55 * heatOf(error) : 0.15 + 0.6 * heatOf(error);
        context.fillRect(x, gap, this.across - gap, MAP_LINE - 2 * gap);
        context.globalAlpha = 1;
        if (introduced && this.across > 5) {
          context.fillStyle = color("panel");
          diamond(context, x + (this.across - gap) / 2, MAP_LINE / 2, Math.min(4, this.across / 3));
        }
      }
      if (this.isChosen(layer, cell) || (index === this.list.active && at === this.column)) {
        context.strokeStyle = color(this.isChosen(layer, cell) ? "text" : "accent");
        context.lineWidth = 2;
        context.strokeRect(x + 1, 1, Math.max(1, this.across - gap - 2), MAP_LINE - 2);
      }
    }
  }

  isChosen(layer, cell) {
    if (this.chosen?.layer !== layer) return false;
    const { ranks } = this.chosen;
    return ranks === null || (ranks.first <= cell.last && cell.first <= ranks.last);
  }

  // The cell under a pointer; -1: the name.
  columnAt(event) {
    const x = event.clientX - this.grid.getBoundingClientRect().left + this.grid.scrollLeft - this.names;
    return x < 0 ? -1 : Math.min(this.cells.length - 1, Math.floor(x / this.across));
  }

  point(event) {
    const index = event.target.closest?.("[data-line]")?.dataset.line;
    if (index !== undefined) this.tell(this.shown[index], this.columnAt(event));
  }

  tell(layer = this.shown[this.list.active], column = this.column) {
    if (layer === undefined) {
      this.told.textContent = "The worst of each layer, stronger for larger errors; a diamond where an error is introduced or an entry is to blame.";
      return;
    }
    const cell = column < 0 ? { first: 0, last: this.comparison.ranks.length - 1 } : this.cells[column];
    const { grade, error, introduced } = this.worst(layer, cell);
    const where = column < 0 ? "all" : this.rankNames(cell);
    const size = this.comparison.overview.diagnosis ? `, largest error ${briefly(Number(error.toPrecision(3)))}` : "";
    this.told.textContent = shown(`${tail(layer.path, 60)} on ${where}: ${grade < 0 ? "no rows" : (introduced && grade !== GRADE.introduced ? "to blame, " : "") + GRADES[grade].name + size}`);
  }

  pick(index, event) {
    const layer = this.shown[index];
    if (event.target.classList?.contains("twist")) {
      this.toggle(index);
      return;
    }
    if (event.type === "click") this.column = this.columnAt(event);
    const ranks = this.column < 0 ? null : this.cells[this.column];
    const again = this.chosen !== null && this.chosen.layer === layer && this.chosen.ranks?.first === ranks?.first;
    this.choose(again ? null : { layer, ranks, title: ranks === null ? layer.path : `${layer.path} on ${this.rankNames(ranks)}` });
  }

  select(chosen) {
    this.chosen = chosen;
    this.list.draw();
    this.tell();
  }

  // A layer, alone or on ranks from one label to another, as an address names it, or null.
  named(path, ...labels) {
    const layer = this.layers.known.get(path);
    if (layer === undefined) return null;
    for (let above = layer.parent; above !== null; above = above.parent) above.open = true;
    this.show();
    if (labels.length === 0) return { layer, ranks: null, title: path };
    const [first, last] = labels.map((label) => this.comparison.ranks.findIndex((one) => one.label === label));
    if (first < 0 || !(last >= first)) return null;
    return { layer, ranks: { first, last }, title: `${path} on ${this.rankNames({ first, last })}` };
  }

  toggle(index) {
    const layer = this.shown[index];
    layer.open = !layer.open && layer.children.length > 0;
    this.show(index);
  }

  move(event, index) {
    if (this.shown[index] === undefined) return false;
    if (event.key === "ArrowRight") this.column = Math.min(this.cells.length - 1, this.column + 1);
    else if (event.key === "ArrowLeft") this.column = Math.max(-1, this.column - 1);
    else if (event.key === " ") this.toggle(index);
    else return false;
    this.list.draw();
    this.tell();
    return true;
  }
}
