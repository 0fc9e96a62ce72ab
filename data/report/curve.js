// SPDX-License-Identifier: Apache-2.0
// The error of one step along the order of execution, forward and backward apart, a line for each rank, over what
// the diagnosis explains. Zero, infinity and NaN have no place on a logarithmic scale: each has a separate band.
"use strict";

const BAND = 16;
const STRIP = 6;
const CLICK = 4; // pixels that a click may move
const LEGEND = GRADES.filter(({ name }) => ["unexplained", "propagated", "introduced"].includes(name));

class Curve {
  // `first`: the row that is marked, as { rank, row, mark }, or null; `changed()` says that another step is shown.
  constructor(box, { comparison, open, first, changed }) {
    this.comparison = comparison;
    this.open = open;
    this.passes = null;
    this.selected = null;
    this.first = first;
    this.select = document.getElementById("metric");
    this.inputs = document.getElementById("inputs-too");
    this.steps = document.getElementById("step");
    this.tip = element("div", { class: "tip", role: "status" });
    this.tip.hidden = true;
    this.ring = element("div", { class: "ring" });
    this.ring.hidden = true;
    this.plots = [
      new Plot("forward", (direction) => direction === 0 || direction === 3),
      new Plot("backward", (direction) => direction === 1 || direction === 2),
    ];
    this.legend = element("p", { class: "legend muted" });
    box.append(...this.plots.map((plot) => plot.box), this.legend, this.ring, this.tip);
    const judged = comparison.ranks.some((rank) => rank.errors) ? [JUDGED] : [];
    const metrics = [...judged, ...comparison.modes.flatMap((mode) => METRICS[mode])];
    this.metrics = [...new Map(metrics.map((one) => [one.name, one])).values()];
    this.select.replaceChildren(...this.metrics.map((metric) => element("option", { text: metric.name })));
    this.select.addEventListener("change", () => this.measure());
    this.inputs.checked = comparison.modes.includes("md5"); // whose inputs are not another row's outputs again
    this.inputs.addEventListener("change", () => this.measure());
    this.firstStep = (first?.rank ?? comparison.ranks.find((rank) => rank.rows > 0))?.about.step;
    this.steps.replaceChildren(...comparison.steps.map((text) => element("option", { text })));
    document.getElementById("of-step").hidden = comparison.steps.length === 1;
    this.showStep(this.firstStep);
    this.steps.addEventListener("change", () => {
      this.goTo(this.stepShown());
      changed();
    });
    for (const plot of this.plots) this.listen(plot);
    new ResizeObserver(() => this.draw()).observe(box);
    this.measure();
  }

  measure() {
    this.metric = this.metrics[this.select.selectedIndex] ?? this.metrics[0];
    const metricOf = (rank) => [JUDGED, ...METRICS[rank.mode]].find((one) => one.name === this.metric.name);
    for (const plot of this.plots) {
      plot.measure(this.comparison, metricOf, this.inputs.checked);
      plot.box.hidden = plot.length === 0;
      plot.cursor = null;
    }
    const checksum = this.metric.column === null;
    this.bands = { nan: false, inf: false, zero: false };
    this.hasScale = false;
    for (const { values } of this.plots.flatMap((plot) => plot.series)) {
      for (const value of values) {
        if (value > 0 && value < Infinity) this.hasScale = true;
        else if (value === 0) this.bands.zero = true;
        else if (value === Infinity) this.bands.inf = true;
        else if (value !== NOTHING) this.bands.nan = true;
      }
    }
    this.names = checksum ? { inf: "different", zero: "equal" } : { nan: "NaN", inf: "inf", zero: "0" };
    const unit = this.comparison.ranks.map((rank) => rank.byName.get(this.metric.column)?.unit).find(Boolean);
    this.unit = unit ?? "";
    this.draw();
  }

  stepShown() {
    return this.comparison.steps[this.steps.selectedIndex];
  }

  // Without a step of this name, shows the step where the difference begins.
  showStep(step) {
    const { steps } = this.comparison;
    this.steps.selectedIndex = steps.indexOf(steps.includes(step) ? step : this.firstStep);
  }

  goTo(step) {
    this.showStep(step);
    for (const plot of this.plots) this.point(plot, null);
    this.draw();
  }

  // `masks[rank]`: which rows the filters leave (null: none); `passes` null: all rows of all ranks. Steps that they
  // leave nothing of cannot be chosen.
  filter(masks, ranksShown) {
    this.passes = masks;
    this.ranksShown = ranksShown;
    const { ranks, steps } = this.comparison;
    const left = new Set(ranks.filter((rank) => rank.rows > 0 && ranksShown.has(rank.index)).map((rank) => rank.about.step));
    [...this.steps.options].forEach((option, index) => (option.disabled = !left.has(steps[index])));
    this.goTo(left.size === 0 || left.has(this.stepShown()) ? this.stepShown() : steps.find((step) => left.has(step)));
  }

  choose(rank, row) {
    this.selected = row === undefined ? null : { rank, row };
    if (this.selected === null || rank.about.step === this.stepShown() || !this.ranksShown.has(rank.index)) this.draw();
    else this.goTo(rank.about.step);
  }

  shows(rank) {
    return rank.about.step === this.stepShown() && (this.ranksShown === undefined || this.ranksShown.has(rank.index));
  }

  // The rank whose entries the band shows: only one, as bands of several ranks hide each other.
  banded() {
    if (this.metric !== JUDGED) return null;
    const wanted = this.selected?.rank ?? this.first?.rank;
    const isShown = (rank) => rank?.explained && this.shows(rank);
    return isShown(wanted) ? wanted : this.comparison.ranks.find(isShown) ?? null;
  }

  showLegend() {
    const rank = this.banded();
    this.legend.hidden = this.metric !== JUDGED;
    if (rank === null) return;
    const of = this.comparison.ranks.length > 1 ? ` on ${rank.label}` : "";
    const { threshold } = this.comparison.overview.diagnosis;
    const shown = this.comparison.ranks.filter((one) => this.shows(one));
    const bad = LEGEND.filter(({ name }) => shown.some(({ gradeCounts }) => gradeCounts?.[GRADE[name]] > 0));
    this.legend.replaceChildren(
      element("span", {}, element("i", { class: "key band" }),
        element("span", { text: `explained${of}: the inputs of an entry, and rounding, explain errors up to here (${threshold} times their size); more is evidence, unless replay rules out a fault` })),
      ...bad.map(({ name, mark, tells }) => element("span", {}, element("i", { class: `key ${mark}` }), element("span", { text: `${name}: ${tells}` }))),
      ...(this.first?.mark === "introduced" && this.shows(this.first.rank) ? [element("span", {}, element("i", { class: "key culprit" }), element("span", { text: "the culprit" }))] : []));
  }

  visible(plot) {
    return plot.series.filter(({ rank }) => this.shows(rank));
  }

  draw() {
    const shownPlots = this.plots.filter((plot) => !plot.box.hidden);
    const style = getComputedStyle(document.documentElement);
    this.color = (name) => style.getPropertyValue(`--${name}`).trim();
    for (const plot of shownPlots) {
      const bands = BAND * Object.values(this.bands).filter(Boolean).length;
      const scale = this.hasScale ? (shownPlots.length > 1 ? 92 : 170) : 0;
      plot.canvas.style.height = `${MARGIN.top + bands + scale + STRIP + MARGIN.bottom}px`;
      this.drawPlot(plot);
    }
    this.showLegend();
  }

  drawPlot(plot) {
    const ratio = window.devicePixelRatio || 1;
    plot.measureWidth();
    const { clientWidth: width, clientHeight: height } = plot.canvas;
    if (width < MARGIN.left + MARGIN.right + 10) return;
    plot.canvas.width = Math.round(width * ratio);
    plot.canvas.height = Math.round(height * ratio);
    const context = plot.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.layOut(plot, height);
    this.drawAxes(plot, context, width, height);
    this.drawBand(plot, context);
    this.drawMarks(plot, context);
    for (const series of this.visible(plot)) this.drawSeries(plot, context, series);
    this.drawStrip(plot, context);
    if (plot.brush) {
      context.fillStyle = this.color("brush");
      context.fillRect(Math.min(...plot.brush), MARGIN.top, Math.abs(plot.brush[1] - plot.brush[0]), plot.bottom - MARGIN.top);
    }
  }

  // Bands from above: NaN, infinity, the logarithmic scale, zero.
  layOut(plot, height) {
    let top = MARGIN.top;
    plot.band = {};
    for (const name of ["nan", "inf"]) {
      if (!this.bands[name]) continue;
      plot.band[name] = top;
      top += BAND;
    }
    plot.bottom = height - MARGIN.bottom - STRIP;
    plot.scaleTop = top + 4;
    plot.scaleBottom = plot.bottom - 4;
    if (this.bands.zero) {
      plot.band.zero = plot.bottom - BAND;
      plot.scaleBottom -= BAND;
    }
    let low = Infinity;
    let high = 0;
    let explained = 0;
    const banded = this.banded();
    for (const { rank, rows, values } of this.visible(plot)) {
      const last = Math.min(values.length, Math.ceil(plot.to));
      for (let i = Math.floor(plot.from); i < last; ++i) {
        const value = values[i];
        if (value > 0 && value < Infinity) {
          if (value < low) low = value;
          if (value > high) high = value;
        }
        if (rank === banded && rank.explained[rows[i]] > explained) explained = rank.explained[rows[i]];
      }
    }
    // The band may reach far beyond all errors; they come first.
    high = Math.max(high, Math.min(explained, 10 * high));
    plot.low = high === 0 ? 0 : Math.floor(Math.log10(low));
    plot.high = high === 0 ? 1 : Math.max(plot.low + 1, Math.ceil(Math.log10(high)));
  }

  y(plot, value) {
    if (Number.isNaN(value)) return plot.band.nan + BAND / 2;
    if (value === Infinity) return plot.band.inf + BAND / 2;
    if (value === 0) return plot.band.zero + BAND / 2;
    const share = (Math.log10(value) - plot.low) / (plot.high - plot.low);
    return plot.scaleBottom - share * (plot.scaleBottom - plot.scaleTop);
  }

  drawAxes(plot, context, width, height) {
    context.fillStyle = this.color("band");
    for (const top of Object.values(plot.band)) context.fillRect(MARGIN.left, top + 1, plot.width(), BAND - 2);
    context.fillStyle = this.color("muted");
    context.strokeStyle = this.color("line");
    context.lineWidth = 1;
    context.textAlign = "right";
    for (const [name, top] of Object.entries(plot.band)) {
      context.fillText(this.names[name], MARGIN.left - 8, top + BAND / 2);
    }
    if (this.hasScale) {
      const step = Math.max(1, Math.ceil((plot.high - plot.low) / 5));
      for (let power = plot.low; power <= plot.high; power += step) {
        const y = Math.round(this.y(plot, 10 ** power)) + 0.5;
        line(context, MARGIN.left, y, width - MARGIN.right, y);
        const plain = power >= -3 && power <= 4;
        context.fillText((plain ? String(Number((10 ** power).toPrecision(1))) : `1e${power}`) + this.unit, MARGIN.left - 8, y);
      }
    }
    context.fillStyle = this.color("text");
    context.textAlign = "left";
    context.fillText(plot.title, 0, height - MARGIN.bottom + 12);
    context.fillStyle = this.color("muted");
    context.textAlign = "center";
    const span = plot.to - plot.from;
    const step = niceStep(span / Math.max(2, plot.width() / 110));
    for (let at = Math.ceil(plot.from / step) * step; at < plot.to; at += step) {
      context.fillText(count(at), plot.x(at), height - MARGIN.bottom + 12);
    }
  }

  // Entries that were not judged by their size, as modules that hand on what is within, leave a gap.
  drawBand(plot, context) {
    const rank = this.banded();
    const series = plot.series.find((one) => one.rank === rank);
    if (!series) return;
    const columns = Math.ceil(plot.width()) + 1;
    const tops = new Float32Array(columns);
    const last = Math.min(series.rows.length, Math.ceil(plot.to));
    for (let i = Math.floor(plot.from); i < last; ++i) {
      const explained = rank.explained[series.rows[i]];
      if (!(explained > 0) || series.values[i] === NOTHING) continue;
      const left = Math.max(0, Math.floor(plot.x(i - 0.5) - MARGIN.left));
      const right = Math.max(left, Math.ceil(plot.x(i + 0.5) - MARGIN.left) - 1);
      for (let column = left; column <= right && column < columns; ++column) tops[column] = Math.max(tops[column], explained);
    }
    context.fillStyle = this.color("explained");
    for (let column = 0; column < columns; ++column) {
      if (tops[column] === 0) continue;
      const top = Math.max(plot.scaleTop - 4, this.y(plot, tops[column]));
      if (top < plot.bottom) context.fillRect(MARGIN.left + column, top, 1, plot.bottom - top);
    }
  }

  // The culprit, or the first bad row, and the one whose panel is open.
  drawMarks(plot, context) {
    const mark = (found, color, dashes) => {
      const series = found && this.visible(plot).find((one) => one.rank === found.rank);
      if (!series || !plot.belongs(found.rank.direction(found.row))) return;
      const x = plot.x(plot.placeOf(series, found.row));
      if (x < MARGIN.left || x > MARGIN.left + plot.width()) return;
      context.strokeStyle = this.color(color);
      context.lineWidth = 1.5;
      context.setLineDash(dashes);
      line(context, x, MARGIN.top, x, plot.bottom);
      context.setLineDash([]);
    };
    mark(this.first, this.first?.mark, [4, 3]);
    mark(this.selected, "accent", []);
  }

  drawSeries(plot, context, series) {
    const mask = this.passes === null ? undefined : this.passes[series.rank.index];
    const kept = (i) => mask === undefined || (mask !== null && mask[series.rows[i]] === 1);
    const first = Math.max(0, Math.floor(plot.from) - 1);
    const last = Math.min(series.rows.length, Math.ceil(plot.to) + 1);
    const dense = last - first > plot.width() * 1.2;
    context.save();
    context.beginPath();
    context.rect(MARGIN.left, MARGIN.top, plot.width(), plot.bottom - MARGIN.top);
    context.clip();
    context.strokeStyle = context.fillStyle = this.rankColor(series.rank);
    context.lineWidth = 1.5;
    context.globalAlpha = mask === undefined ? 0.85 : 0.22;
    if (dense) this.drawDense(plot, context, series, first, last);
    else this.drawLine(plot, context, series, first, last);
    context.globalAlpha = 1;
    this.drawPoints(plot, context, series, first, last, kept, dense);
    context.restore();
  }

  drawLine(plot, context, series, first, last) {
    context.beginPath();
    let pen = false;
    for (let i = first; i < last; ++i) {
      const value = series.values[i];
      if (value === NOTHING) continue; // rows without a value do not interrupt the line
      const inScale = value > 0 && value < Infinity;
      if (inScale && pen) context.lineTo(plot.x(i), this.y(plot, value));
      else if (inScale) context.moveTo(plot.x(i), this.y(plot, value));
      pen = inScale;
    }
    context.stroke();
  }

  // More rows than pixels: what each column of pixels spans.
  drawDense(plot, context, series, first, last) {
    const columns = Math.ceil(plot.width()) + 1;
    const low = new Float32Array(columns).fill(Infinity);
    const high = new Float32Array(columns).fill(-Infinity);
    for (let i = first; i < last; ++i) {
      const value = series.values[i];
      if (!(value > 0 && value < Infinity)) continue;
      const column = Math.floor(plot.x(i) - MARGIN.left);
      if (column < 0 || column >= columns) continue;
      const y = this.y(plot, value);
      if (y < low[column]) low[column] = y;
      if (y > high[column]) high[column] = y;
    }
    context.globalAlpha *= 0.6;
    for (let column = 0; column < columns; ++column) {
      if (high[column] < low[column]) continue;
      context.fillRect(MARGIN.left + column, low[column], 1, Math.max(1.5, high[column] - low[column]));
    }
  }

  // Rows that pass the filters: all where there is room, else the worst of each column of pixels.
  drawPoints(plot, context, series, first, last, kept, dense) {
    const worst = new Map();
    const point = (i) => {
      const value = series.values[i];
      const grade = series.rank.grades[series.rows[i]];
      const x = plot.x(i);
      const y = this.y(plot, value);
      context.fillStyle = grade >= BAD ? this.color(GRADES[grade].mark) : this.rankColor(series.rank);
      if (grade === GRADE.introduced) {
        diamond(context, x, y, 6);
      } else if (value > 0 && value < Infinity) {
        context.beginPath();
        context.arc(x, y, grade >= BAD ? 3.2 : 2, 0, 2 * Math.PI);
        context.fill();
      } else {
        context.fillRect(x - 1, y - 5, 2, 10);
      }
    };
    const introduced = [];
    for (let i = first; i < last; ++i) {
      const value = series.values[i];
      if (value === NOTHING || !kept(i)) continue;
      const grade = series.rank.grades[series.rows[i]];
      if (grade === GRADE.introduced) {
        introduced.push(i);
        continue;
      }
      if (!dense) {
        point(i);
        continue;
      }
      const inScale = value > 0 && value < Infinity;
      if (inScale && grade < BAD && this.passes === null) continue; // is in the span drawn already
      const key = Math.floor(plot.x(i)) * 4 + (inScale ? 0 : value === 0 ? 1 : value === Infinity ? 2 : 3);
      const other = worst.get(key);
      if (other === undefined || series.rank.grades[series.rows[other]] < grade) worst.set(key, i);
    }
    for (const i of worst.values()) point(i);
    introduced.forEach(point); // above all others
  }

  drawStrip(plot, context) {
    const columns = Math.ceil(plot.width());
    const worst = new Int8Array(columns).fill(-1);
    for (const series of this.visible(plot)) {
      const mask = this.passes === null ? undefined : this.passes[series.rank.index];
      if (mask === null) continue;
      const last = Math.min(series.rows.length, Math.ceil(plot.to));
      for (let i = Math.floor(plot.from); i < last; ++i) {
        const row = series.rows[i];
        if (mask !== undefined && mask[row] === 0) continue;
        const left = Math.floor(plot.x(i - 0.5) - MARGIN.left);
        const right = Math.max(left, Math.ceil(plot.x(i + 0.5) - MARGIN.left) - 1);
        const grade = series.rank.grades[row];
        for (let column = Math.max(0, left); column <= right && column < columns; ++column) {
          if (worst[column] < grade) worst[column] = grade;
        }
      }
    }
    for (let column = 0; column < columns; ++column) {
      if (worst[column] < 0) continue;
      context.fillStyle = this.color(GRADES[worst[column]].mark);
      context.globalAlpha = worst[column] < BAD ? 0.35 : 1;
      context.fillRect(MARGIN.left + column, plot.bottom + 1, 1, STRIP - 1);
    }
    context.globalAlpha = 1;
  }

  // An element, so that a pointer that moves does not draw a million rows again.
  placeCursor(plot) {
    this.ring.hidden = !plot.cursor;
    if (!plot.cursor) return;
    const { series, index } = plot.cursor;
    const value = series.values[index];
    const y = value === NOTHING ? plot.bottom + STRIP / 2 : this.y(plot, value);
    this.ring.style.left = `${plot.canvas.offsetLeft + plot.x(index)}px`;
    this.ring.style.top = `${plot.canvas.offsetTop + y}px`;
  }

  // A rank has one colour in all steps; a comparison without steps and ranks has a separate colour.
  rankColor(rank) {
    const { rankNames, ranks, steps } = this.comparison;
    const lines = rankNames.length > 1 || steps.length > 1 ? rankNames : ranks.map(({ label }) => label);
    const place = lines.indexOf(lines === rankNames ? rank.about.rank : rank.label);
    const hue = lines.length <= 8 ? [214, 32, 150, 285, 190, 330, 60, 250][place] : (place * 137.5) % 360;
    return `hsl(${hue} 62% ${this.color("lightness")})`;
  }

  // The row nearest to a place on the canvas; of several, the worst.
  nearest(plot, x, y) {
    let best = null;
    const reach = Math.max(0.5, (5 / plot.width()) * (plot.to - plot.from));
    for (const series of this.visible(plot)) {
      const middle = plot.position(x);
      const last = Math.min(series.rows.length - 1, Math.ceil(middle + reach));
      for (let i = Math.max(0, Math.floor(middle - reach)); i <= last; ++i) {
        const value = series.values[i];
        const dy = value === NOTHING ? plot.bottom - y : this.y(plot, value) - y;
        const distance = (plot.x(i) - x) ** 2 + dy ** 2 / 4 + (value === NOTHING ? 400 : 0);
        if (best === null || distance < best.distance) best = { series, index: i, distance };
      }
    }
    return best;
  }

  listen(plot) {
    const { canvas } = plot;
    const place = (event) => ({ x: event.offsetX, y: event.offsetY });
    let start = null;
    canvas.addEventListener("pointerdown", (event) => {
      start = place(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const { x, y } = place(event);
      if (start && Math.abs(x - start.x) > CLICK) {
        plot.brush = [start.x, x];
        this.drawPlot(plot);
      }
      this.point(plot, plot.brush ? null : this.nearest(plot, x, y));
    });
    canvas.addEventListener("pointerup", (event) => {
      const { x, y } = place(event);
      if (plot.brush) {
        const [from, to] = plot.brush.map((edge) => plot.position(edge)).sort((a, b) => a - b);
        plot.brush = null;
        plot.show(from, Math.min(plot.length, Math.max(8, to - from)));
        this.draw();
      } else if (start) {
        this.openAt(this.nearest(plot, x, y));
      }
      start = null;
    });
    canvas.addEventListener("pointercancel", () => {
      start = plot.brush = null;
      this.draw();
    });
    canvas.addEventListener("pointerleave", () => this.point(plot, null));
    canvas.addEventListener("blur", () => this.point(plot, null));
    canvas.addEventListener("dblclick", () => {
      plot.reset();
      this.draw();
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const span = plot.to - plot.from;
        plot.show(plot.from + (Math.sign(event.deltaX || event.deltaY) * span) / 10, span);
      } else {
        plot.zoom(event.deltaY > 0 ? 1.25 : 0.8, plot.position(event.offsetX) + 0.5);
      }
      this.draw();
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(plot, event));
  }

  key(plot, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const middle = plot.cursor ? plot.cursor.index + 0.5 : (plot.from + plot.to) / 2;
    if (event.key === "ArrowRight") this.step(plot, 1);
    else if (event.key === "ArrowLeft") this.step(plot, -1);
    else if (event.key === "ArrowDown") this.otherRank(plot, 1);
    else if (event.key === "ArrowUp") this.otherRank(plot, -1);
    else if (event.key === "+" || event.key === "=") plot.zoom(0.5, middle);
    else if (event.key === "-") plot.zoom(2, middle);
    else if (event.key === "0") plot.reset();
    else if (event.key === "Enter") this.openAt(plot.cursor);
    else return;
    event.preventDefault();
    this.draw();
    this.placeCursor(plot);
  }

  step(plot, by) {
    const series = plot.cursor?.series ?? this.visible(plot)[0];
    if (!series) return;
    let index = plot.cursor ? plot.cursor.index + by : Math.max(0, Math.ceil(plot.from));
    while (index >= 0 && index < series.rows.length && series.values[index] === NOTHING) index += by;
    if (index < 0 || index >= series.rows.length) return;
    if (index < plot.from) plot.show(index, plot.to - plot.from);
    if (index >= plot.to) plot.show(index + 1 - (plot.to - plot.from), plot.to - plot.from);
    this.point(plot, { series, index });
  }

  otherRank(plot, by) {
    const shown = this.visible(plot);
    if (!plot.cursor || shown.length === 0) return;
    const place = shown.indexOf(plot.cursor.series) + by;
    const series = shown[(place + shown.length) % shown.length];
    this.point(plot, { series, index: Math.min(plot.cursor.index, series.rows.length - 1) });
  }

  point(plot, found) {
    plot.cursor = found;
    this.placeCursor(plot);
    this.tip.hidden = !found;
    if (!found) return;
    const { series, index } = found;
    const row = series.rows[index];
    const value = series.values[index];
    const told = value === NOTHING ? "no value" : this.metric.column === null ? (value === 0 ? "equal" : "different") : briefly(value) + this.unit;
    this.tip.replaceChildren(
      element("b", { class: "name", text: tail(series.rank.name(row), 70) }),
      element("span", { text: `${this.metric.name}: ${told}` }),
      element("span", {}, badge(series.rank.grades[row]),
        element("span", { text: series.rank.label ? `  ${series.rank.label}` : "" })),
    );
    const left = Math.min(plot.x(index) + 12, plot.canvas.clientWidth - this.tip.offsetWidth - 4);
    const below = value === NOTHING ? plot.bottom : this.y(plot, value);
    this.tip.style.left = `${Math.max(0, plot.canvas.offsetLeft + left)}px`;
    this.tip.style.top = `${plot.canvas.offsetTop + below + 12}px`;
  }

  openAt(found) {
    if (found) this.open(this.comparison.id(found.series.rank, found.series.rows[found.index]));
  }
}
