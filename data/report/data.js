// SPDX-License-Identifier: Apache-2.0
// The rows of every pair of ranks, unpacked from the page into typed arrays.
"use strict";

const NO_ENTRY = 0xffffffff;
const WHOLE_NAME = 0x80000000;
const WORST_METRICS = {
  tensor: ["Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio"],
  statistics: [
    "NormRelativeErr", "MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr",
    "Max diff", "Min diff", "Mean diff", "L2norm diff",
  ],
  md5: [],
};

// Codes of few texts fit into few bytes.
function codeArray(texts, length) {
  const type = texts < 0xff ? Uint8Array : texts < 0xffff ? Uint16Array : Uint32Array;
  return new type(length);
}

// Reads a cell's text as a number, else returns undefined.
function numberIn(text) {
  if (text === "Nan") return NaN;
  const digits = text.endsWith("%") ? text.slice(0, -1) : text;
  if (digits === "inf" || digits === "-inf") return digits === "inf" ? Infinity : -Infinity;
  return /^[-+]?[0-9.]+(e[-+]?[0-9]+)?$/.test(digits) ? Number(digits) : undefined;
}

class Column {
  constructor(description, rows) {
    this.name = description.name;
    this.unit = description.unit || "";
    this.texts = description.texts;
    this.codes = codeArray(this.texts.length, rows);
    this.inChunk = description.numbers;
    this.numbers = this.inChunk.includes(1) ? new Float64Array(rows) : null;
    this.textNumbers = null;
  }

  isNumber(row) {
    return this.codes[row] === 0;
  }

  // As the csv has it, but that numbers are written the JavaScript way.
  text(row) {
    const code = this.codes[row];
    return code === 0 ? String(this.numbers[row]) + this.unit : this.texts[code - 1];
  }

  brief(row) {
    return this.isNumber(row) ? briefly(this.numbers[row]) + this.unit : this.text(row);
  }

  number(row) {
    const code = this.codes[row];
    if (code === 0) return this.numbers[row];
    this.textNumbers ??= this.texts.map(numberIn);
    return this.textNumbers[code - 1];
  }
}

class Rank {
  static async load(index, about, onRows) {
    const rank = new Rank(index, about);
    if (about.chunks.length === 0) return rank;
    rank.adopt(await unpackJson(`rank-${index}-names`));
    let first = 0;
    for (const [chunk, rows] of about.chunks.entries()) {
      rank.adoptChunk(await unpack(`rank-${index}-rows-${chunk}`), first, rows, chunk);
      first += rows;
      await onRows(rows);
    }
    rank.grade();
    rank.group();
    return rank;
  }

  constructor(index, about) {
    this.index = index;
    this.about = about;
    this.label = about.label || "";
    this.mode = about.mode;
    this.rows = about.chunks.reduce((sum, rows) => sum + rows, 0); // those of golden alone, too
    this.verdicts = new Uint8Array(this.rows);
    this.targets = new Uint32Array(this.rows);
    this.goldens = new Uint32Array(this.rows);
    this.columns = [];
    this.byName = new Map();
    this.entries = [];
    this.groupOf = new Uint32Array(this.rows);
    this.groups = [];
  }

  adopt(names) {
    this.entries = names.entries;
    this.directions = names.directions;
    this.parents = names.parents;
    this.microSteps = names.microSteps ?? [];
    this.flow = names.flow;
    this.goldenFlow = names.goldenFlow;
    this.stackOf = names.stackOf;
    this.stacks = names.stacks;
    this.goldenOnly = names.goldenOnly;
    this.explained = names.explained ? new Float32Array(this.rows) : null;
    this.columns = names.columns.map((description) => new Column(description, this.rows));
    this.byName = new Map(this.columns.map((column) => [column.name, column]));
  }

  adoptChunk(buffer, first, rows, chunk) {
    let at = 0;
    const take = (type) => {
      const array = new type(buffer, at, rows);
      at += Math.ceil(array.byteLength / 8) * 8;
      return array;
    };
    this.verdicts.set(take(Uint8Array), first);
    this.targets.set(take(Uint32Array), first);
    this.goldens.set(take(Uint32Array), first);
    if (this.explained !== null) this.adoptExplained(take(Uint16Array), first);
    for (const column of this.columns) {
      column.codes.set(take(Uint32Array), first);
      if (column.inChunk[chunk]) column.numbers.set(take(Float64Array), first);
    }
  }

  // The upper halves of floats.
  adoptExplained(halves, first) {
    const whole = Uint32Array.from(halves, (half) => half * 0x10000);
    this.explained.set(new Float32Array(whole.buffer), first);
  }

  // Grades rows by their origin, or by their verdict if they have no origin.
  grade() {
    const origins = this.byName.get("Origin");
    const error = this.byName.get("Error");
    const byVerdict = VERDICTS.map((verdict) => GRADE[verdict]);
    const byOrigin = origins?.texts.map((text) => GRADE[text]);
    this.grades = new Uint8Array(this.rows);
    this.gradeCounts = GRADES.map(() => 0);
    this.errors = error ? new Float64Array(this.rows) : null;
    for (let row = 0; row < this.rows; ++row) {
      const verdict = this.verdicts[row];
      this.grades[row] = origins === undefined || verdict === ONLY_IN_GOLDEN ? byVerdict[verdict] : byOrigin[origins.codes[row] - 1];
      this.gradeCounts[this.grades[row]] += 1;
      if (error) this.errors[row] = error.number(row) ?? NaN;
    }
  }

  // Rows of one entry stand together; groups are the entries in execution order.
  group() {
    this.isOutput = new Uint8Array(this.rows);
    const suffixes = this.columns[0].texts;
    const isInput = suffixes.map((text) => /^\.(input|parameters)\./.test(text) || text === ".input");
    for (let row = 0; row < this.rows; ++row) {
      const entry = this.entryOf(row);
      const last = this.groups.at(-1);
      if (last === undefined || last.entry !== entry || entry === NO_ENTRY) {
        this.groups.push({ entry, first: row, last: row + 1, worst: 0, blamed: false });
      } else {
        last.last = row + 1;
      }
      const group = this.groups.at(-1);
      group.worst = Math.max(group.worst, this.grades[row]);
      this.groupOf[row] = this.groups.length - 1;
      const code = this.columns[0].codes[row];
      this.isOutput[row] = code !== 0 && isInput[code - 1] ? 0 : 1;
    }
  }

  entryOf(row) {
    const target = this.targets[row];
    const entry = target === NO_ENTRY ? this.goldens[row] : target;
    return entry === NO_ENTRY ? NO_ENTRY : entry & ~WHOLE_NAME;
  }

  entryName(group) {
    const { entry, first } = this.groups[group];
    return entry === NO_ENTRY ? this.name(first) : this.entries[entry];
  }

  direction(row) {
    const entry = this.entryOf(row);
    return entry === NO_ENTRY ? 0 : this.directions[entry];
  }

  nameFrom(codes, column, row) {
    const text = column.text(row);
    const code = codes[row];
    return code === NO_ENTRY || code & WHOLE_NAME ? text : this.entries[code] + text;
  }

  isOnlyGolden(row) {
    return this.verdicts[row] === ONLY_IN_GOLDEN;
  }

  // Entries that only golden has are numbered separately, and may have the name of another entry.
  groupNamed(name, onlyGolden) {
    return this.groups.find((group) => group.entry !== NO_ENTRY && this.entries[group.entry] === name && this.isOnlyGolden(group.first) === onlyGolden);
  }

  entryIsOnlyGolden(entry) {
    const [first, number] = this.goldenOnly;
    return entry >= first && entry < first + number;
  }

  // The row of the page that is a row of the tables, of those that are on the page.
  rowOfTable(index) {
    let row = 0;
    for (let left = index; left > 0 || this.isOnlyGolden(row); ++row) if (!this.isOnlyGolden(row)) --left;
    return row;
  }

  name(row) {
    return this.isOnlyGolden(row) ? this.benchName(row) : this.targetName(row);
  }

  targetName(row) {
    return this.nameFrom(this.targets, this.columns[0], row);
  }

  benchName(row) {
    return this.nameFrom(this.goldens, this.columns[1], row);
  }

  matched(row) {
    return this.goldens[row] !== NO_ENTRY && this.targets[row] !== NO_ENTRY;
  }

  // In letters.
  longestName() {
    const lengths = this.entries.map((text) => text.length);
    const suffixes = [0, 1].map((side) => this.columns[side]?.texts.map((text) => text.length));
    let longest = 0;
    for (let row = 0; row < this.rows; ++row) {
      const side = this.isOnlyGolden(row) ? 1 : 0;
      const code = (side === 1 ? this.goldens : this.targets)[row];
      const suffix = suffixes[side][this.columns[side].codes[row] - 1] ?? 0;
      longest = Math.max(longest, suffix + (code === NO_ENTRY || code & WHOLE_NAME ? 0 : lengths[code]));
    }
    return longest;
  }

  messages(row) {
    if (this.isOnlyGolden(row)) return [`only golden has this${this.entryIsOnlyGolden(this.entryOf(row)) ? " entry" : ""}`];
    const text = this.byName.get("Err_message").text(row);
    return text === "[]" ? [] : JSON.parse(text);
  }

  frames(row) {
    const target = this.targets[row];
    const stack = target === NO_ENTRY ? undefined : this.stackOf[target & ~WHOLE_NAME];
    return stack === undefined || stack < 0 ? [] : this.stacks[stack];
  }

  cell(row, name) {
    if (name === "NPU Name") return this.targetName(row);
    if (name === "Bench Name") return this.benchName(row);
    return this.byName.get(name)?.text(row) ?? "";
  }
}

// A row of the whole comparison has a number: those of the ranks one after the other.
class Comparison {
  constructor(overview, ranks) {
    this.overview = overview;
    this.ranks = ranks;
    this.starts = [];
    this.rows = 0;
    for (const rank of ranks) {
      this.starts.push(this.rows);
      this.rows += rank.rows;
    }
    this.steps = [...new Set(ranks.map((rank) => rank.about.step))];
    this.rankNames = [...new Set(ranks.map((rank) => rank.about.rank))];
    this.modes = [...new Set(ranks.filter((rank) => rank.rows > 0).map((rank) => rank.mode))];
  }

  rankIndex(id) {
    let low = 0;
    let high = this.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= id) low = middle;
      else high = middle - 1;
    }
    // Ranks without rows begin where the next one does.
    while (this.ranks[low].rows === 0 && low > 0) --low;
    return low;
  }

  at(id) {
    const index = this.rankIndex(id);
    return { rank: this.ranks[index], row: id - this.starts[index] };
  }

  id(rank, row) {
    return this.starts[rank.index] + row;
  }

  // Rows that the page has no room for.
  notHere() {
    return this.ranks.reduce((sum, rank) => sum + rank.about.notHere, 0);
  }

  // The label that distinguishes a rank from the others: its step, its number or both.
  briefLabel({ about, label }) {
    const parts = [this.steps.length > 1 && about.step, this.rankNames.length > 1 && about.rank].filter(Boolean);
    return parts.length > 0 ? parts.join("/") : label;
  }

  // The number of tasks in words: "of 2 steps on 4 ranks".
  extent() {
    const [steps, ranks] = [this.steps.length, this.rankNames.length];
    const words = (steps > 1 ? ` of ${plural(steps, "step")}` : "") + (ranks > 1 ? ` on ${plural(ranks, "rank")}` : "");
    return words === "" && this.ranks.length > 1 ? ` of ${plural(this.ranks.length, "comparison")}` : words;
  }

  // The row with this name on the rank with this label, or null.
  rowNamed(label, name) {
    const rank = this.ranks.find((one) => one.label === label);
    for (let row = 0; row < (rank?.rows ?? 0); ++row) if (rank.name(row) === name) return this.id(rank, row);
    return null;
  }

  // The first error in execution order on any rank; without an error the first warning.
  firstBad() {
    let best = null;
    for (const rank of this.ranks) {
      if (!rank.about.first) continue;
      const { reason, measure, row: order, onPage } = rank.about.first;
      const row = rank.rowOfTable(onPage);
      const verdict = rank.verdicts[row];
      if (best === null || verdict > best.verdict || (verdict === best.verdict && order < best.order)) {
        best = { rank, row, order, reason, measure, verdict };
      }
    }
    return best;
  }
}
