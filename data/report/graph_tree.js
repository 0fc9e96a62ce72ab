// SPDX-License-Identifier: Apache-2.0
// The graph of one rank before it is drawn: boxes within boxes in order of execution, runs of layers of one kind as
// one box, and edges from an output to the boxes that use it.
"use strict";

const DEEPEST_BOX = 64; // of a name with more parts the rest is one
const FEWEST_ALIKE = 4; // layers in a row that become one box
const MOST_IN_BOX = 20000; // beyond them neighbours stand together in ranges
const BOXES_IN_RANGE = 1000;

class GraphTree extends ModuleTree {
  constructor(rank) {
    super([rank]);
    this.rank = rank;
    this.byNode = new Map(); // folded boxes by what they are called
    this.markSides();
    const nodes = [...this.nodes.values()];
    // Upwards: the contents of a box are folded before the box.
    for (const node of nodes.reverse()) this.fold(node);
    this.number();
    this.connect();
  }

  // Micro steps apart.
  rootOf(rank, entry) {
    const direction = DIRECTIONS[rank.directions[entry]];
    return this.root(rank.microSteps.length > 0 ? `micro step ${rank.microSteps[entry]} \u00b7 ${direction}` : direction);
  }

  root(label) {
    const known = this.nodes.has(label);
    const root = super.root(label);
    if (!known) this.roots.sort((a, b) => a.number - b.number); // as they ran
    return root;
  }

  // Without construct.json, names place modules in each other; the modules of operations are unknown.
  byDots(rank, entry) {
    const name = rank.entries[entry];
    let node = this.rootOf(rank, entry);
    const key = rank.entryIsOnlyGolden(entry) ? `${name} (only in golden)` : name;
    const path = moduleOf(name);
    if (path === null) return this.child(node, key, withoutDirection(name));
    const parts = path.split(".");
    if (parts.length > DEEPEST_BOX) parts.push(parts.splice(DEEPEST_BOX).join("."));
    let whole = "";
    for (const part of parts) {
      whole += part + ".";
      node = this.child(node, whole, part);
    }
    return this.child(node, key, withoutDirection(name).split(".").slice(-2).join("."));
  }

  // Marks the boxes that only one side has.
  markSides() {
    const { rank } = this;
    for (const group of rank.groups) {
      const node = this.nodeOf(rank, group);
      node.entry = group.entry;
      let alone = true;
      for (let row = group.first; row < group.last && alone; ++row) alone = !rank.matched(row);
      if (alone) node.side = rank.isOnlyGolden(group.first) ? "golden" : "target";
    }
  }

  fold(node) {
    const { children } = node;
    node.isOdd = node.side !== undefined || children.some((child) => child.isOdd); // one side has it otherwise
    node.pattern = node.label.replace(/[0-9]+/g, "#");
    if (children.length < FEWEST_ALIKE) return;
    const folded = [];
    for (let at = 0; at < children.length; ) {
      const end = endOfAlike(children, at);
      const run = children.slice(at, end);
      const isRun = run.length >= FEWEST_ALIKE && run.length < children.length;
      if (isRun) folded.push(this.together(node, run, rangeLabel(run[0].label, run.at(-1).label), true));
      else for (const child of run) folded.push(child);
      at = end;
    }
    node.children = folded;
    if (folded.length <= MOST_IN_BOX) return;
    node.children = [];
    for (let at = 0; at < folded.length; at += BOXES_IN_RANGE) {
      const part = folded.slice(at, at + BOXES_IN_RANGE);
      node.children.push(this.together(node, part, `${part[0].label} \u2026 ${part.at(-1).label}`, false));
    }
  }

  together(parent, children, label, alike) {
    const box = new TreeNode(label, `${children[0].title} \u2026 ${children.at(-1).title}`, parent);
    Object.assign(box, { children, alike: alike ? children.length : 0, isFold: true, number: this.nodes.size });
    this.nodes.set(`${parent.number} fold ${box.number}`, box);
    for (const child of children) {
      child.parent = box;
      child.counts.forEach((number, grade) => (box.counts[grade] += number));
      box.error = Math.max(box.error, child.error);
      box.blamed ||= child.blamed;
    }
    return box;
  }

  // Each box and its contents are one range of numbers.
  number() {
    let next = 0;
    const pending = [...this.roots].reverse();
    this.boxes = [];
    while (pending.length > 0) {
      const node = pending.pop();
      node.depth = node.parent === null ? 0 : node.parent.depth + 1;
      node.from = next++;
      this.boxes.push(node);
      for (let i = node.children.length - 1; i >= 0; --i) pending.push(node.children[i]);
    }
    for (let i = this.boxes.length - 1; i >= 0; --i) {
      const node = this.boxes[i];
      node.to = node.children.length > 0 ? node.children.at(-1).to : node.from + 1;
    }
  }

  // Makes the edges, as numbers of boxes: which box uses the output of which other, and how bad that output is.
  connect() {
    const { flow, goldenFlow } = this.rank;
    const [takers, givers] = [[], []];
    let entry = 0;
    for (let at = 0; at < flow.length; ) {
      entry += flow[at++];
      for (let left = flow[at++]; left > 0; --left) {
        takers.push(entry);
        givers.push(entry - flow[at++]);
      }
      entry += 1;
    }
    const own = takers.length;
    for (let at = 0; at < goldenFlow.length; at += 2) {
      takers.push(goldenFlow[at]);
      givers.push(goldenFlow[at + 1]);
    }
    const nodes = this.byEntry[this.rank.index];
    this.edges = { from: new Int32Array(takers.length), to: new Int32Array(takers.length), kind: new Uint8Array(takers.length) };
    let size = 0;
    for (let i = 0; i < takers.length; ++i) {
      const [from, to] = [nodes[givers[i]], nodes[takers[i]]];
      if (from === undefined || to === undefined || from === to) continue;
      this.edges.from[size] = from.from;
      this.edges.to[size] = to.from;
      this.edges.kind[size++] = i >= own ? EDGE.golden : edgeKind(from);
    }
    this.edges.size = size;
  }

  // The boxes that are to be seen, from top to bottom, with their places.
  lay() {
    const { head, box, gap } = GRAPH_SIZES;
    const lines = [];
    const pending = [...this.roots].reverse();
    let y = gap;
    while (pending.length > 0) {
      const node = pending.pop();
      if (node.closing) {
        node.closing.bottom = y;
        y += gap;
        continue;
      }
      node.top = y;
      node.line = lines.length;
      lines.push(node);
      if (node.open && node.children.length > 0) {
        y += head + gap;
        pending.push({ closing: node });
        for (let i = node.children.length - 1; i >= 0; --i) pending.push(node.children[i]);
      } else {
        y += box;
        node.bottom = y;
        y += gap;
      }
    }
    this.lines = lines;
    this.height = y;
    this.join();
  }

  // Edges between the boxes that are to be seen: those of a closed box are those of all its contents.
  join() {
    const { lines, edges } = this;
    const lineOf = new Int32Array(this.boxes.length).fill(-1);
    for (const [line, node] of lines.entries()) {
      if (!node.open || node.children.length === 0) lineOf.fill(line, node.from, node.to);
    }
    // The pair and its kind in one number, exact below 2^53.
    const keys = new Float64Array(edges.size);
    const most = lines.length;
    let size = 0;
    for (let i = 0; i < edges.size; ++i) {
      const [from, to] = [lineOf[edges.from[i]], lineOf[edges.to[i]]];
      if (from >= 0 && to >= 0 && from !== to) keys[size++] = (from * most + to) * 4 + edges.kind[i];
    }
    const sorted = keys.subarray(0, size).sort();
    this.outgoing = [];
    this.incoming = [];
    for (let i = 0; i < size; ++i) {
      const pair = Math.floor(sorted[i] / 4);
      if (i + 1 < size && Math.floor(sorted[i + 1] / 4) === pair) continue; // the worse kind follows
      const edge = { from: Math.floor(pair / most), to: pair % most, kind: sorted[i] % 4 };
      (this.outgoing[edge.from] ??= []).push(edge);
      (this.incoming[edge.to] ??= []).push(edge);
    }
  }

  // The first line that ends below a place.
  lineAt(y) {
    let [low, high] = [0, this.lines.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const node = this.lines[middle];
      const end = node.open && node.children.length > 0 ? node.top + GRAPH_SIZES.head : node.bottom;
      if (end < y) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const GRAPH_SIZES = { head: 26, box: 26, gap: 9 };
// The later the worse.
const EDGE = { golden: 0, plain: 1, propagated: 2, introduced: 3 };

function edgeKind(from) {
  const worst = from.worst();
  return worst === GRADE.introduced ? EDGE.introduced : worst === GRADE.propagated || worst === GRADE.error ? EDGE.propagated : EDGE.plain;
}

// The place after the last of the layers from `first` on that are of one kind and numbered one after the other.
function endOfAlike(children, first) {
  const start = children[first];
  let end = first + 1;
  if (start.isOdd || (start.children.length === 0 && moduleOf(start.title) === null)) return end;
  let [place, step] = [-1, 0];
  let before = numbersOf(start.label);
  if (before.length === 0) return end;
  for (; end < children.length && children[end].pattern === start.pattern && !children[end].isOdd; ++end) {
    const numbers = numbersOf(children[end].label);
    if (place < 0) {
      place = numbers.findIndex((number, i) => number !== before[i]);
      step = place < 0 ? 0 : numbers[place] - before[place];
    }
    const inLine = Math.abs(step) === 1 && numbers.every((number, i) => number === before[i] + (i === place ? step : 0));
    if (!inLine) break;
    before = numbers;
  }
  return end;
}

function numbersOf(label) {
  return (label.match(/[0-9]+/g) ?? []).map(Number);
}

// `layers.0–31.Block` of its first and last.
function rangeLabel(first, last) {
  const [parts, others] = [first, last].map((label) => label.split(/([0-9]+)/));
  return parts.map((part, i) => (part === others[i] ? part : `${part}\u2013${others[i]}`)).join("");
}
