// SPDX-License-Identifier: Apache-2.0
// One statistic of all rows of a quantity, unpacked, and what the colours of the map are made of.
"use strict";

const FIRST_NUMBER = 4; // lower codes: missing, NaN, inf, -inf
const NAN = 1;
const WORST = 255; // of the paint: NaN
const ENDLESS = 254;
const TOP = 253;
const NOT_NUMBERS = [undefined, NaN, Infinity, -Infinity];
const FINER = 8; // columns that one of the coarser picture holds

class Cells {
  constructor(block, statistic, scales, runs) {
    this.block = block;
    this.statistic = statistic;
    this.rows = block.names.length;
    this.runs = runs;
    this.columns = runs[0].length / this.rows;
    this.scales = scales;
    this.painted = new Map();
  }

  static async load(index, at, block, runs) {
    const scales = new Float64Array(await unpack(`scales-${index}-${at}`));
    const cells = [];
    for (let run = 0; run < runs; ++run) {
      cells.push(Cells.codes(new Uint8Array(await unpack(`cells-${index}-${at}-${run}`)), block.names.length));
    }
    return new Cells(block, block.statistics[at], scales, cells);
  }

  // Low bytes, then high ones, of the differences along each row.
  static codes(bytes, rows) {
    const size = bytes.length / 2;
    const codes = new Uint16Array(size);
    const columns = size / rows;
    for (let row = 0, at = 0; row < rows; ++row) {
      let code = 0;
      for (let column = 0; column < columns; ++column, ++at) {
        code = (code + bytes[at] + (bytes[size + at] << 8)) & 0xffff;
        codes[at] = code;
      }
    }
    return codes;
  }

  // Returns undefined where there is no number.
  value(run, row, column) {
    const code = this.runs[run][row * this.columns + column];
    if (code < FIRST_NUMBER) return NOT_NUMBERS[code];
    return this.scales[row * 4] * Math.sinh(this.scales[row * 4 + 1] + (code - FIRST_NUMBER) * this.scales[row * 4 + 2]);
  }

  // The paint of a mode: a byte a cell, the larger the more it has to be seen; 0: no cell.
  paint(mode, run) {
    const key = `${mode}-${run}`;
    if (!this.painted.has(key)) {
      const fine = { usual: () => this.againstUsual(run), value: () => this.byValue(run), apart: () => this.apart() }[mode]();
      this.painted.set(key, { fine, coarse: this.coarser(fine) });
    }
    return this.painted.get(key);
  }

  each(run, body) {
    const paint = new Uint8Array(this.rows * this.columns);
    for (let row = 0; row < this.rows; ++row) body(paint, this.runs[run], row, row * this.columns, (row + 1) * this.columns);
    return paint;
  }

  static notNumber(code) {
    return code === 0 ? 0 : code === NAN ? WORST : ENDLESS;
  }

  // How many times the usual of the steps before: twice is 8 steps of the scale; odd bytes are below the usual. The
  // usual follows slowly, so that single steps do not move it far.
  againstUsual(run) {
    return this.each(run, (paint, codes, row, from, to) => {
      const quantum = this.scales[row * 4 + 2];
      const swing = Math.max(this.scales[row * 4 + 3], 1e-9);
      const calm = Math.max(1, 3 * swing); // what swings widely by itself has to swing wider
      let usual = null;
      let seen = 0;
      for (let at = from; at < to; ++at) {
        const code = codes[at];
        if (code < FIRST_NUMBER) {
          paint[at] = Cells.notNumber(code);
          continue;
        }
        const bent = code * quantum;
        usual ??= bent;
        const off = bent - usual;
        const size = Math.min(125, Math.round((Math.abs(off) / calm) * 11.54)); // 8 / ln 2
        paint[at] = 2 + 2 * size - (off < 0 && size > 0 ? 1 : 0);
        const pull = Math.max(1 / ++seen, 0.02);
        usual += pull * Math.max(-2 * swing, Math.min(2 * swing, off));
      }
    });
  }

  range() {
    let low = Infinity;
    let high = -Infinity;
    for (let row = 0; row < this.rows; ++row) {
      for (const codes of this.runs) {
        let least = 0xffff;
        let most = 0;
        for (let at = row * this.columns; at < (row + 1) * this.columns; ++at) {
          const code = codes[at];
          if (code < FIRST_NUMBER) continue;
          if (code < least) least = code;
          if (code > most) most = code;
        }
        if (least > most) continue;
        const [unit, start, quantum] = this.scales.subarray(row * 4, row * 4 + 3);
        const ends = [least, most].map((code) => start + (code - FIRST_NUMBER) * quantum);
        const largest = unit * Math.sinh(Math.max(...ends.map(Math.abs)));
        const smallest = ends[0] * ends[1] <= 0 ? unit : unit * Math.sinh(Math.min(...ends.map(Math.abs)));
        if (smallest > 0 && smallest < low) low = smallest;
        if (largest > high) high = largest;
      }
    }
    return high > 0 ? [Math.log10(Math.max(low, high * 1e-12)), Math.log10(high)] : [0, 1];
  }

  byValue(run) {
    this.valueRange ??= this.range();
    const [low, high] = this.valueRange;
    const across = Math.max(1e-9, high - low);
    return this.each(run, (paint, codes, row, from, to) => {
      const [unit, start, quantum] = this.scales.subarray(row * 4, row * 4 + 3);
      for (let at = from; at < to; ++at) {
        const code = codes[at];
        if (code < FIRST_NUMBER) {
          paint[at] = Cells.notNumber(code);
          continue;
        }
        const size = Math.abs(unit * Math.sinh(start + (code - FIRST_NUMBER) * quantum));
        const level = size > 0 ? (Math.log10(size) - low) / across : 0;
        paint[at] = 1 + Math.max(0, Math.min(TOP - 1, Math.round(level * (TOP - 1))));
      }
    });
  }

  // The difference of both runs in multiples of their fluctuation: once is 0, each doubling 24 more.
  apart() {
    const other = this.runs[1];
    return this.each(0, (paint, codes, row, from, to) => {
      const perStep = this.scales[row * 4 + 2] / Math.max(this.scales[row * 4 + 3], this.scales[row * 4 + 2], 1e-9);
      for (let at = from; at < to; ++at) {
        const [a, b] = [codes[at], other[at]];
        if (a === 0 || b === 0) continue;
        if (a < FIRST_NUMBER || b < FIRST_NUMBER) {
          paint[at] = a === b ? 1 : WORST;
          continue;
        }
        const times = Math.abs(a - b) * perStep;
        paint[at] = times < 1 ? 1 : Math.min(TOP, 1 + Math.round(Math.log2(times) * 24));
      }
    });
  }

  // The worst of several columns, for pictures of all of them.
  coarser(fine) {
    const columns = Math.ceil(this.columns / FINER);
    const coarse = new Uint8Array(this.rows * columns);
    for (let row = 0; row < this.rows; ++row) {
      for (let column = 0, at = row * this.columns; column < this.columns; ++column, ++at) {
        const to = row * columns + (column >> 3);
        if (fine[at] > coarse[to]) coarse[to] = fine[at];
      }
    }
    return { paint: coarse, columns };
  }
}
