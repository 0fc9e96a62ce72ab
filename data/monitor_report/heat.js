// SPDX-License-Identifier: Apache-2.0
// The map: rows by steps, each pixel the worst of the cells in it, so that no single step is lost from sight.
"use strict";

const EDGE = { right: 14, lane: 12, bottom: 20 };
const NAME_HEIGHT = 12;
const CLICK_PIXELS = 4;
const CALM = 4; // so far from the usual, in eighths of doublings, is no colour

// The sequential scale goes from dark to light and is safe for the colour-blind.
const DEPTHS = [[0.05, 40, 24, 84], [0.25, 62, 73, 137], [0.5, 33, 145, 140], [0.75, 94, 201, 98], [1, 253, 231, 37]];
const EMBER_LIGHT = [[0, 244, 243, 240], [0.25, 253, 204, 138], [0.6, 227, 74, 51], [1, 127, 0, 30]];
const EMBER_DARK = [[0, 38, 42, 48], [0.25, 140, 84, 30], [0.6, 245, 120, 50], [1, 255, 226, 150]];
const SEA_LIGHT = [[0, 244, 243, 240], [0.35, 158, 202, 225], [1, 8, 81, 156]];
const SEA_DARK = [[0, 38, 42, 48], [0.35, 44, 98, 150], [1, 150, 205, 255]];

function blend(stops, share) {
  const above = stops.findIndex(([at]) => at >= share);
  if (above <= 0) return stops[above < 0 ? stops.length - 1 : 0].slice(1);
  const [low, high] = [stops[above - 1], stops[above]];
  const part = (share - low[0]) / (high[0] - low[0]);
  return [1, 2, 3].map((i) => Math.round(low[i] + part * (high[i] - low[i])));
}

// A colour for each byte of the paint, as pixels.
function palette(mode, dark) {
  const colors = new Uint32Array(256);
  const pixel = ([red, green, blue]) => (255 << 24) | (blue << 16) | (green << 8) | red;
  for (let byte = 1; byte <= TOP; ++byte) {
    if (mode === "usual") {
      const share = Math.max(0, Math.min(1, ((byte >> 1) - CALM) / (60 - CALM)));
      const below = byte % 2 === 1 && byte > 2;
      colors[byte] = pixel(blend(below ? (dark ? SEA_DARK : SEA_LIGHT) : dark ? EMBER_DARK : EMBER_LIGHT, share));
    } else if (mode === "apart") {
      colors[byte] = pixel(blend(dark ? EMBER_DARK : EMBER_LIGHT, (byte - 1) / (TOP - 1)));
    } else {
      colors[byte] = pixel(blend(DEPTHS, (byte - 1) / (TOP - 1)));
    }
  }
  colors[ENDLESS] = pixel(dark ? [166, 160, 230] : [92, 72, 160]);
  colors[WORST] = pixel(dark ? [214, 217, 222] : [34, 37, 43]);
  return colors;
}

// The visible steps and rows; the loss, the map and the curve share them.
class View {
  constructor(changed) {
    this.changed = changed;
    this.steps = [0, 1];
    this.x = [0, 1]; // steps seen, from and to
    this.y = [0, 1]; // rows seen
    this.rows = 1;
    this.names = 200;
  }

  reset() {
    this.x = [...this.steps];
    this.y = [0, this.rows];
    this.changed();
  }

  zoom(axis, factor, around) {
    const [low, high] = axis === "x" ? this.steps : [0, this.rows];
    const [from, to] = this[axis];
    const least = Math.min(high - low, axis === "x" ? 8 : 4);
    const span = Math.min(high - low, Math.max(least, (to - from) * factor));
    this.show(axis, around - ((around - from) / (to - from)) * span, span);
  }

  show(axis, from, span) {
    const [low, high] = axis === "x" ? this.steps : [0, this.rows];
    span = Math.min(span, high - low);
    from = Math.min(Math.max(low, from), high - span);
    this[axis] = [from, from + span];
    this.changed();
  }

  // Into sight, without zooming out.
  reveal(axis, at) {
    const [from, to] = this[axis];
    if (at < from || at >= to) this.show(axis, at - (to - from) / 2, to - from);
  }
}

class Heat {
  // `pick(row, step)` when a cell is chosen, `hover(row, step)` under the pointer.
  constructor(box, { view, pick, hover }) {
    Object.assign(this, { box, view, pick, hover });
    this.canvas = element("canvas", { tabindex: "0", role: "application", "aria-label": "Rows by steps: arrows move, + and - zoom steps, [ and ] zoom rows, 0 shows all" });
    this.over = element("canvas", { class: "over", "aria-hidden": "true" });
    box.append(this.canvas, this.over);
    this.picture = document.createElement("canvas");
    this.cells = null;
    this.order = [];
    this.chosen = null;
    this.brush = null;
    this.listen();
    new ResizeObserver(() => this.view.changed()).observe(box);
  }

  // `order`: rows that are shown; `marks`: [row, step, kind] of them; `alerts` likewise.
  show(cells, order, marks, alerts, mode, run, partsAt) {
    Object.assign(this, { cells, order, marks, alerts, mode, run, partsAt });
    this.places = new Map(order.map((row, place) => [row, place]));
    const { steps, width } = cells.block;
    this.perStep = width > 1 ? 2 : 1; // columns for each entry of steps
    this.columnSteps = steps;
    this.view.rows = order.length;
    this.view.y = [Math.min(this.view.y[0], Math.max(0, order.length - 1)), Math.min(this.view.y[1], order.length)];
    if (!(this.view.y[1] > this.view.y[0])) this.view.y = [0, order.length];
  }

  columnAt(step) {
    let low = 0;
    let high = this.columnSteps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.columnSteps[middle] <= step) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  x(step) {
    const [from, to] = this.view.x;
    return this.view.names + ((step - from) / (to - from)) * this.across;
  }

  y(place) {
    const [from, to] = this.view.y;
    return EDGE.lane + ((place - from) / (to - from)) * this.down;
  }

  stepAt(x) {
    const [from, to] = this.view.x;
    return from + ((x - this.view.names) / this.across) * (to - from);
  }

  placeAt(y) {
    const [from, to] = this.view.y;
    return from + ((y - EDGE.lane) / this.down) * (to - from);
  }

  draw(color, dark) {
    if (this.cells === null) return;
    this.color = color;
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.box;
    this.across = Math.max(10, width - this.view.names - EDGE.right);
    this.down = Math.max(10, height - EDGE.lane - EDGE.bottom);
    for (const canvas of [this.canvas, this.over]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.imageSmoothingEnabled = false;
    this.drawCells(context, ratio, palette(this.mode, dark));
    this.drawNames(context, height);
    this.drawSteps(context, height);
    this.drawMarks(context);
    this.drawOver();
  }

  // From which column to which each pixel goes.
  pixelColumns(pixels) {
    const edges = new Int32Array(pixels + 1);
    for (let i = 0; i <= pixels; ++i) edges[i] = (this.columnAt(this.stepAt(this.view.names + (i / pixels) * this.across)) + (i === pixels ? 1 : 0)) * this.perStep;
    return edges;
  }

  drawCells(context, ratio, colors) {
    const [width, height] = [Math.round(this.across * ratio), Math.round(this.down * ratio)];
    const { fine, coarse } = this.cells.paint(this.mode, this.run);
    const edges = this.pixelColumns(width);
    const useCoarse = (edges[width] - edges[0]) / width >= 2 * FINER;
    const [paint, columns, shift] = useCoarse ? [coarse.paint, coarse.columns, 3] : [fine, this.cells.columns, 0];
    this.picture.width = width;
    this.picture.height = height;
    const target = this.picture.getContext("2d");
    const image = target.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const [from, to] = this.view.y;
    const worst = new Uint8Array(width);
    const gap = height / (to - from) >= 12 * ratio ? Math.round(ratio) : 0;
    let before = "";
    for (let y = 0; y < height; ++y) {
      const exact = from + (y / height) * (to - from);
      const first = Math.floor(exact);
      const last = Math.min(this.order.length - 1, Math.max(first, Math.ceil(from + ((y + 1) / height) * (to - from)) - 1));
      if (gap > 0 && (exact - first) * (height / (to - from)) < gap) continue;
      const key = `${first} ${last}`;
      if (key !== before) {
        before = key;
        worst.fill(0);
        for (let place = first; place <= last; ++place) this.worstOf(worst, paint, this.order[place] * columns, edges, shift, columns);
      }
      for (let x = 0, at = y * width; x < width; ++x, ++at) pixels[at] = colors[worst[x]];
    }
    target.putImageData(image, 0, 0);
    context.drawImage(this.picture, this.view.names, EDGE.lane, this.across, this.down);
    context.strokeStyle = this.color("line");
    context.lineWidth = 1;
    context.strokeRect(this.view.names - 0.5, EDGE.lane - 0.5, this.across + 1, this.down + 1);
  }

  worstOf(worst, paint, row, edges, shift, columns) {
    for (let x = 0; x < worst.length; ++x) {
      const first = Math.max(0, edges[x]) >> shift;
      const last = Math.min(columns - 1, Math.max(first, (edges[x + 1] - 1) >> shift, (edges[x] + this.perStep - 1) >> shift));
      if (edges[x] < 0 && edges[x + 1] <= 0) continue;
      let most = worst[x];
      for (let column = first; column <= last; ++column) {
        const byte = paint[row + column];
        if (byte > most) most = byte;
      }
      worst[x] = most;
    }
  }

  label(row) {
    const { names, stages, microSteps } = this.cells.block;
    const [stage, micro] = [stages[row], microSteps[row]];
    return (stage > 0 ? `${stage}: ` : "") + names[row] + (micro > 0 ? ` [${micro}]` : "");
  }

  // All names where there is room, else some of them.
  drawNames(context, height) {
    const [from, to] = this.view.y;
    const line = this.down / (to - from);
    const each = Math.max(1, Math.ceil(NAME_HEIGHT / line));
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    const room = this.view.names - 12;
    for (let place = Math.ceil(from / each) * each; place < to; place += each) {
      const y = this.y(place + 0.5);
      if (y < EDGE.lane + 4 || y > EDGE.lane + this.down - 4) continue;
      const row = this.order[place];
      context.fillStyle = this.color(this.chosen?.row === row ? "text" : "muted");
      context.fillText(fitting(context, shown(this.label(row)), room), this.view.names - 7, y);
      if (each > 1) context.fillRect(this.view.names - 4, Math.round(y), 3, 1);
    }
    if (this.order.length === 0) {
      context.textAlign = "center";
      context.fillText("no row has these words", this.view.names + this.across / 2, height / 2);
    }
  }

  drawSteps(context, height) {
    const [from, to] = this.view.x;
    const step = niceStep((to - from) / Math.max(2, this.across / 90));
    context.fillStyle = this.color("muted");
    context.textAlign = "center";
    for (let at = Math.ceil(from / step) * step; at < to; at += step) {
      const x = this.x(at + 0.5);
      context.fillRect(Math.round(x), EDGE.lane + this.down + 1, 1, 3);
      context.fillText(count(at), x, height - EDGE.bottom / 2 + 2);
    }
  }

  // Where rows part or break out, alerts, and how many of them each step has.
  drawMarks(context) {
    const lane = new Uint16Array(Math.ceil(this.across) + 1);
    const line = this.down / (this.view.y[1] - this.view.y[0]);
    context.save();
    context.beginPath();
    context.rect(this.view.names, 0, this.across, EDGE.lane + this.down);
    context.clip();
    const inView = (place, x) => place !== undefined && x >= this.view.names && x <= this.view.names + this.across;
    for (const [row, step] of this.alerts) {
      const place = this.places.get(row);
      const x = this.x(step + 0.5);
      if (!inView(place, x)) continue;
      lane[Math.floor(x - this.view.names)] += 1;
      const y = this.y(place + 0.5);
      if (line < 7 || y < EDGE.lane || y > EDGE.lane + this.down) continue;
      context.beginPath();
      context.moveTo(x, y - 4);
      context.lineTo(x + 4, y + 3);
      context.lineTo(x - 4, y + 3);
      context.closePath();
      context.fillStyle = this.color("panel");
      context.strokeStyle = this.color("alert");
      context.lineWidth = 1.5;
      context.fill();
      context.stroke();
    }
    context.fillStyle = this.color("alert");
    lane.forEach((number, x) => {
      const size = number === 0 ? 0 : Math.min(EDGE.lane - 3, 3 + Math.log2(number));
      if (size > 0) context.fillRect(this.view.names + x - 0.5, EDGE.lane - 2 - size, 2, size);
    });
    const size = Math.max(1.5, Math.min(4.5, line / 2.4));
    for (const [row, step, kind] of this.marks) {
      const place = this.places.get(row);
      const x = this.x(step + 0.5);
      if (!inView(place, x)) continue;
      context.fillStyle = this.color("panel");
      diamond(context, x, this.y(place + 0.5), size + 1);
      context.fillStyle = this.color(kind === "passing" ? "passing" : "mark");
      diamond(context, x, this.y(place + 0.5), size);
    }
    context.restore();
  }

  // Draws the parts that move with the pointer above the picture, so that nothing else is drawn anew.
  drawOver() {
    const ratio = window.devicePixelRatio || 1;
    const context = this.over.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.over.width, this.over.height);
    if (!this.color) return;
    if (this.partsAt !== undefined) {
      const x = this.x(this.partsAt + 0.5);
      if (x >= this.view.names && x <= this.view.names + this.across) {
        context.strokeStyle = this.color("mark");
        context.setLineDash([4, 3]);
        line(context, x, 0, x, EDGE.lane + this.down);
        context.setLineDash([]);
      }
    }
    if (this.chosen !== null && this.places.has(this.chosen.row)) {
      const [top, bottom] = [this.y(this.places.get(this.chosen.row)), this.y(this.places.get(this.chosen.row) + 1)];
      const x = this.x(this.chosen.step);
      const right = this.x(this.chosen.step + 1);
      context.strokeStyle = this.color("accent");
      context.lineWidth = 1;
      context.globalAlpha = 0.65;
      context.strokeRect(this.view.names, Math.round(top) - 0.5, this.across, Math.max(2, Math.round(bottom - top) + 1));
      context.globalAlpha = 1;
      context.lineWidth = 2;
      if (right > this.view.names && x < this.view.names + this.across) {
        context.strokeRect(x - 1, top - 1, Math.max(3, right - x) + 2, Math.max(3, bottom - top) + 2);
      }
    }
    if (this.brush) {
      const [a, b] = this.brush;
      context.fillStyle = this.color("brush");
      context.fillRect(Math.min(a.x, b.x), Math.min(a.y, b.y), Math.abs(a.x - b.x), Math.abs(a.y - b.y));
    }
  }

  choose(row, step) {
    this.chosen = { row, step };
    if (this.places.has(row)) this.view.reveal("y", this.places.get(row));
    this.view.reveal("x", step);
    this.drawOver();
  }

  at(event) {
    const place = Math.floor(this.placeAt(event.offsetY));
    if (event.offsetX < 0 || place < 0 || place >= this.order.length) return null;
    const column = Math.max(0, this.columnAt(this.stepAt(Math.max(this.view.names, event.offsetX))));
    return { row: this.order[place], step: this.columnSteps[column] };
  }

  listen() {
    let start = null;
    const { canvas, view } = this;
    canvas.addEventListener("pointerdown", (event) => {
      start = { x: event.offsetX, y: event.offsetY };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const here = { x: event.offsetX, y: event.offsetY };
      if (start && Math.hypot(here.x - start.x, here.y - start.y) > CLICK_PIXELS) this.brush = [start, here];
      if (this.brush) this.drawOver();
      this.hover(this.brush ? null : this.at(event));
    });
    canvas.addEventListener("pointerup", (event) => {
      if (this.brush) this.zoomTo(...this.brush);
      else if (start) this.pickAt(this.at(event));
      start = this.brush = null;
      this.drawOver();
    });
    canvas.addEventListener("pointercancel", () => {
      start = this.brush = null;
      this.drawOver();
    });
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("dblclick", () => view.reset());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  zoomTo(a, b) {
    const [left, right] = [a.x, b.x].sort((p, q) => p - q).map((x) => this.stepAt(x));
    const [top, bottom] = [a.y, b.y].sort((p, q) => p - q).map((y) => this.placeAt(y));
    // A drag along one direction leaves the other as it is.
    if (Math.abs(a.x - b.x) > 12) this.view.show("x", left, Math.max(8, right - left));
    if (Math.abs(a.y - b.y) > 12) this.view.show("y", Math.floor(top), Math.max(4, Math.ceil(bottom) - Math.floor(top)));
  }

  pickAt(found) {
    if (found === null) return;
    this.choose(found.row, found.step);
    this.pick(found.row, found.step);
  }

  wheel(event) {
    event.preventDefault();
    const { view } = this;
    const [by, rows] = [event.deltaY || event.deltaX, view.y[1] - view.y[0]];
    if (event.offsetX < view.names) {
      view.show("y", view.y[0] + (Math.sign(by) * Math.max(1, rows / 12)), rows);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const span = view.x[1] - view.x[0];
      view.show("x", view.x[0] + (Math.sign(by) * span) / 10, span);
    } else if (event.ctrlKey || event.altKey) {
      view.zoom("y", by > 0 ? 1.25 : 0.8, this.placeAt(event.offsetY));
    } else {
      view.zoom("x", by > 0 ? 1.25 : 0.8, this.stepAt(event.offsetX));
    }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.order.length === 0) return;
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], PageUp: [-10, 0], PageDown: [10, 0] };
    const middle = this.chosen ? this.chosen.step + 0.5 : (this.view.x[0] + this.view.x[1]) / 2;
    const centre = this.chosen ? (this.places.get(this.chosen.row) ?? 0) + 0.5 : (this.view.y[0] + this.view.y[1]) / 2;
    if (event.key in moves) this.move(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.view.zoom("x", 0.5, middle);
    else if (event.key === "-") this.view.zoom("x", 2, middle);
    else if (event.key === "]") this.view.zoom("y", 0.5, centre);
    else if (event.key === "[") this.view.zoom("y", 2, centre);
    else if (event.key === "0") this.view.reset();
    else return;
    event.preventDefault();
  }

  // A column that is seen: of many in a pixel the next pixel's.
  move(rows, columns) {
    if (this.chosen === null || !this.places.has(this.chosen.row)) {
      this.pickAt({ row: this.order[Math.floor(this.view.y[0])], step: this.columnSteps[Math.max(0, this.columnAt(this.view.x[0]))] });
      return;
    }
    const inPixel = Math.max(1, Math.round((this.columnAt(this.view.x[1]) - this.columnAt(this.view.x[0])) / this.across));
    const place = Math.min(this.order.length - 1, Math.max(0, this.places.get(this.chosen.row) + rows));
    const column = this.columnAt(this.chosen.step) + columns * inPixel;
    this.pickAt({ row: this.order[place], step: this.columnSteps[Math.min(this.columnSteps.length - 1, Math.max(0, column))] });
  }
}
