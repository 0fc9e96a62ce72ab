// SPDX-License-Identifier: Apache-2.0
// Lines over the steps, under the map's own axis: the loss, and the row that is chosen, of one run or of both.
"use strict";

const PLOT = { top: 16, bottom: 8, right: 14 };
const NAN_BAND = 14;
const STEEP = 200; // a larger range of sizes needs a scale that bends

// An axis that is logarithmic away from zero where the numbers need it.
class Scale {
  constructor(values) {
    let [low, high, least] = [Infinity, -Infinity, Infinity];
    for (const value of values) {
      if (!Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
      const size = Math.abs(value);
      if (size > 0 && size < least) least = size;
    }
    if (!(low <= high)) [low, high] = [0, 1];
    const most = Math.max(Math.abs(low), Math.abs(high));
    this.bends = most / Math.max(least, most * 1e-15) > STEEP;
    this.unit = this.bends ? Math.max(least, most * 1e-12) : 1;
    const room = this.bends ? 0 : (high - low || Math.abs(high) || 1) * 0.06;
    this.low = this.bend(low - room);
    this.high = this.bend(high + room);
    if (!(this.high > this.low)) this.high = this.low + 1;
  }

  bend(value) {
    return this.bends ? Math.asinh(value / this.unit) : value;
  }

  share(value) {
    return (this.bend(value) - this.low) / (this.high - this.low);
  }

  ticks(most) {
    const ends = [this.low, this.high].map((end) => (this.bends ? this.unit * Math.sinh(end) : end));
    if (this.bends) {
      const powers = [];
      const [from, to] = [Math.floor(Math.log10(this.unit)), Math.ceil(Math.log10(Math.max(...ends.map(Math.abs))))];
      const every = Math.max(1, Math.ceil((to - from) / Math.max(1, most - 1)));
      for (let power = to; power >= from; power -= every) powers.push(10 ** power, -(10 ** power));
      return powers.filter((value) => value >= ends[0] && value <= ends[1] * 1.0001);
    }
    const step = 10 ** Math.floor(Math.log10((ends[1] - ends[0]) / most));
    const nice = [1, 2, 5, 10].map((times) => times * step).find((one) => (ends[1] - ends[0]) / one <= most);
    const made = [];
    for (let at = Math.ceil(ends[0] / nice); at * nice <= ends[1]; ++at) made.push(at * nice);
    return made;
  }
}

class Course {
  constructor(box, { view, label, hover, pick }) {
    this.box = box;
    this.view = view;
    this.canvas = element("canvas", { "aria-label": label, role: "img" });
    box.append(this.canvas);
    this.lines = [];
    this.title = "";
    this.step = null;
    this.canvas.addEventListener("pointermove", (event) => hover(this.stepAt(event.offsetX)));
    this.canvas.addEventListener("pointerleave", () => hover(null));
    this.canvas.addEventListener("click", (event) => pick(this.stepAt(event.offsetX)));
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      view.zoom("x", event.deltaY > 0 ? 1.25 : 0.8, this.stepAt(event.offsetX));
    }, { passive: false });
  }

  // `lines`: { steps, values, name, run }; `marks`: [step, kind].
  show(title, lines, marks, partsAt) {
    Object.assign(this, { title, lines, marks, partsAt });
  }

  x(step) {
    const [from, to] = this.view.x;
    return this.view.names + ((step + 0.5 - from) / (to - from)) * this.across;
  }

  stepAt(x) {
    const [from, to] = this.view.x;
    return Math.floor(from + ((x - this.view.names) / this.across) * (to - from));
  }

  draw(color) {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.box;
    if (width === 0 || height === 0) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.across = Math.max(10, width - this.view.names - PLOT.right);
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.height = height;
    const seen = this.lines.map((one) => this.seen(one));
    const broken = seen.some(({ values, from, to }) => values.subarray(from, to).some((value) => !Number.isFinite(value)));
    this.top = PLOT.top + (broken ? NAN_BAND : 0);
    this.scale = new Scale(seen.flatMap(({ values, from, to }) => [...values.subarray(from, to)]));
    this.drawAxes(context, color, width, broken);
    context.save();
    context.beginPath();
    context.rect(this.view.names, 0, this.across, height);
    context.clip();
    for (const one of seen) this.drawLine(context, color, one);
    this.drawMarks(context, color);
    context.restore();
    this.drawTitle(context, color, width);
  }

  // The part of a line that is in view.
  seen(one) {
    const { steps } = one;
    const [from, to] = this.view.x;
    let first = steps.findIndex((step) => step >= from - 1);
    if (first < 0) first = steps.length;
    let last = first;
    while (last < steps.length && steps[last] <= to) ++last;
    return { ...one, from: Math.max(0, first - 1), to: Math.min(steps.length, last + 1) };
  }

  y(value) {
    const bottom = this.height - PLOT.bottom;
    return bottom - this.scale.share(value) * (bottom - this.top - 4);
  }

  drawAxes(context, color, width, broken) {
    context.strokeStyle = color("line");
    context.lineWidth = 1;
    context.fillStyle = color("muted");
    context.textAlign = "right";
    for (const value of this.scale.ticks(Math.max(2, Math.floor((this.height - this.top) / 24)))) {
      const y = Math.round(this.y(value)) + 0.5;
      line(context, this.view.names, y, width - PLOT.right, y);
      context.fillText(briefly(Number(value.toPrecision(6))), this.view.names - 7, y);
    }
    if (broken) {
      context.fillText("NaN, inf", this.view.names - 7, PLOT.top + NAN_BAND / 2);
      context.fillStyle = color("band");
      context.fillRect(this.view.names, PLOT.top, this.across, NAN_BAND - 2);
    }
  }

  drawLine(context, color, { steps, values, from, to, run }) {
    context.strokeStyle = context.fillStyle = color(run === 0 ? "run1" : "run2");
    context.lineWidth = 1.5;
    const dense = to - from > this.across * 2;
    if (dense) this.drawDense(context, steps, values, from, to);
    else this.drawThin(context, steps, values, from, to, run);
    for (let i = from, last = -9; i < to; ++i) {
      if (Number.isFinite(values[i])) continue;
      const x = this.x(steps[i]);
      if (x - last < 1) continue;
      last = x;
      context.fillRect(x - 1, PLOT.top + 1 + run * (NAN_BAND / 2 - 1), 2, NAN_BAND / 2 - 2);
    }
  }

  drawThin(context, steps, values, from, to, run) {
    context.setLineDash(run === 1 ? [5, 2] : []);
    context.beginPath();
    let pen = false;
    for (let i = from; i < to; ++i) {
      const finite = Number.isFinite(values[i]);
      if (finite) context[pen ? "lineTo" : "moveTo"](this.x(steps[i]), this.y(values[i]));
      pen = finite;
    }
    context.stroke();
    context.setLineDash([]);
  }

  // More steps than pixels: what each column of pixels spans, joined to the one before.
  drawDense(context, steps, values, from, to) {
    let column = null;
    let [low, high] = [Infinity, -Infinity];
    const flush = () => {
      if (column !== null && low <= high) context.fillRect(column, low - 0.75, 1, Math.max(1.5, high - low + 1.5));
    };
    let last = null;
    for (let i = from; i < to; ++i) {
      if (!Number.isFinite(values[i])) continue;
      const x = Math.floor(this.x(steps[i]));
      const y = this.y(values[i]);
      if (x !== column) {
        flush();
        column = x;
        [low, high] = last === null ? [y, y] : [Math.min(y, last), Math.max(y, last)];
      }
      if (y < low) low = y;
      if (y > high) high = y;
      last = y;
    }
    flush();
  }

  drawMarks(context, color) {
    for (const [step, kind] of this.marks ?? []) {
      const x = this.x(step);
      context.fillStyle = color(kind === "alert" ? "alert" : kind === "passing" ? "passing" : "mark");
      if (kind === "alert") {
        context.beginPath();
        context.moveTo(x, 4);
        context.lineTo(x + 4, 11);
        context.lineTo(x - 4, 11);
        context.fill();
      } else {
        diamond(context, x, 8, 5);
      }
    }
    const rule = (step, name, dashes) => {
      if (step === null || step === undefined) return;
      context.strokeStyle = color(name);
      context.lineWidth = 1;
      context.setLineDash(dashes);
      line(context, Math.round(this.x(step)) + 0.5, 0, Math.round(this.x(step)) + 0.5, this.height);
      context.setLineDash([]);
    };
    rule(this.partsAt, "mark", [4, 3]);
    rule(this.step, "accent", []);
  }

  // Above the lines; where there is too little room, over the numbers of the axis too.
  drawTitle(context, color, width) {
    context.textAlign = "left";
    context.font = "600 11.5px system-ui, sans-serif";
    const runs = this.lines.filter(({ name }) => name).map(({ run, name }) => [`\u2015 ${shown(name)}`, run === 0 ? "run1" : "run2"]);
    const rest = runs.reduce((sum, [text]) => sum + context.measureText(text).width + 12, 6);
    const title = fitting(context, shown(this.title), width - rest);
    let x = Math.max(3, Math.min(this.view.names + 6, width - rest - context.measureText(title).width));
    const write = (text, name) => {
      const room = context.measureText(text).width;
      context.fillStyle = color("panel");
      context.globalAlpha = 0.8;
      context.fillRect(x - 3, 1, room + 6, 14);
      context.globalAlpha = 1;
      context.fillStyle = color(name);
      context.fillText(text, x, 8);
      x += room + 12;
    };
    write(title, "text");
    for (const run of runs) write(...run);
  }
}
