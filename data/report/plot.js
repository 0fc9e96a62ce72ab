// SPDX-License-Identifier: Apache-2.0
// The data of a curve: the metrics of rows, and those of one direction under one pair of axes.
"use strict";

const NOTHING = -1; // a row without a value: no partner, no tensor
const MARGIN = { left: 62, right: 14, top: 8, bottom: 22 };

const distanceFromOne = (value) => Math.max(0, 1 - value);
// ||ours - theirs|| / ||theirs||. The cosine is rounded to six digits, which hides what is small; this is not.
function relativeL2(distance, rank, row) {
  if (distance === 0) return 0;
  const norm = rank.byName.get("Bench l2norm")?.number(row);
  return norm === undefined ? NOTHING : distance / norm;
}

const JUDGED = { name: "Error", column: "Error" };
const METRICS = {
  tensor: [
    { name: "EucDist / Bench l2norm", column: "EucDist", of: relativeL2 },
    { name: "1 \u2212 Cosine", column: "Cosine", of: distanceFromOne },
    { name: "MaxAbsErr", column: "MaxAbsErr" },
    { name: "MaxRelativeErr", column: "MaxRelativeErr" },
    { name: "EucDist", column: "EucDist" },
    { name: "1 \u2212 One Thousandth Err Ratio", column: "One Thousandth Err Ratio", of: distanceFromOne },
    { name: "1 \u2212 Five Thousandths Err Ratio", column: "Five Thousandths Err Ratio", of: distanceFromOne },
  ],
  statistics: WORST_METRICS.statistics.map((name) => ({ name, column: name })),
  md5: [{ name: "checksum", column: null }],
};

function checksumDifference(rank, row) {
  const [ours, theirs] = [rank.byName.get("NPU MD5").text(row), rank.byName.get("BENCH MD5").text(row)];
  if (!rank.matched(row) || ours === "N/A" || theirs === "N/A") return NOTHING;
  return ours === theirs ? 0 : Infinity;
}

function metricValue(rank, row, metric, column) {
  if (metric.column === null) return checksumDifference(rank, row);
  const value = column.number(row);
  if (value === undefined) {
    // The tensors hold NaN or infinities at different places.
    return rank.mode === "tensor" && metric !== JUDGED && rank.matched(row) && column.text(row) === "N/A" ? NaN : NOTHING;
  }
  return metric.of ? metric.of(value, rank, row) : Math.abs(value);
}

// One direction of all ranks under one pair of axes.
class Plot {
  constructor(title, belongs) {
    this.title = title;
    this.belongs = belongs;
    this.canvas = element("canvas", { tabindex: "0", role: "application", "aria-label": `Error curve, ${title}` });
    this.box = element("div", { class: "plot" }, this.canvas);
    this.series = [];
    this.length = 0;
    this.reset();
  }

  reset() {
    this.from = 0;
    this.to = Math.max(1, this.length);
  }

  measure(comparison, metricOf, inputsToo) {
    this.series = comparison.ranks.filter((rank) => rank.rows > 0).map((rank) => {
      const metric = metricOf(rank);
      const rows = [];
      for (let row = 0; row < rank.rows; ++row) {
        if ((inputsToo || rank.isOutput[row]) && this.belongs(rank.direction(row))) rows.push(row);
      }
      const column = rank.byName.get(metric?.column);
      const values = Float64Array.from(rows, (row) => (metric && (column || metric.column === null) ? metricValue(rank, row, metric, column) : NOTHING));
      return { rank, rows, values };
    });
    this.length = this.series.reduce((most, one) => Math.max(most, one.rows.length), 0);
    this.reset();
  }

  // Asked for once a drawing: the browser computes a layout to answer.
  measureWidth() {
    this.across = this.canvas.clientWidth - MARGIN.left - MARGIN.right;
  }

  width() {
    return this.across;
  }

  x(position) {
    return MARGIN.left + ((position + 0.5 - this.from) / (this.to - this.from)) * this.width();
  }

  position(x) {
    return this.from + ((x - MARGIN.left) / this.width()) * (this.to - this.from) - 0.5;
  }

  zoom(factor, around) {
    const span = Math.min(this.length, Math.max(8, (this.to - this.from) * factor));
    const share = (around - this.from) / (this.to - this.from);
    this.show(around - share * span, span);
  }

  show(from, span) {
    this.from = Math.min(Math.max(0, from), Math.max(0, this.length - span));
    this.to = this.from + span;
  }

  // Where a row is drawn, or would be if it had a value.
  placeOf(series, row) {
    let low = 0;
    let high = series.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (series.rows[middle] < row) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
