// SPDX-License-Identifier: Apache-2.0
// The layers of the model, by the modules around entries, and for each what is worst in it on every rank.
"use strict";

const DEEPEST_LAYER = 64; // of a path with more parts the rest is one
const MOST_CHILDREN = 60; // beyond them neighbours stand together in ranges

class Layer {
  constructor(label, path, parent, ranks) {
    Object.assign(this, { label, path, parent, children: [], open: false });
    this.depth = parent === null ? -1 : parent.depth + 1;
    this.grades = new Int8Array(ranks).fill(-1);
    this.errors = new Float32Array(ranks);
    this.introduced = new Uint8Array(ranks); // something is, or is to blame though it could not be compared
  }

  take(rank, grade, error, introduced) {
    if (introduced) this.introduced[rank] = 1;
    if (this.grades[rank] < grade) this.grades[rank] = grade;
    if (this.errors[rank] < error) this.errors[rank] = error;
  }

  isIn(other) {
    let layer = this;
    while (layer !== null && layer !== other) layer = layer.parent;
    return layer !== null;
  }
}

// `layers.0.norm` of `Module.layers.0.norm.Norm.forward.0`; null for what is no module's.
function moduleOf(name) {
  const parts = name.split(".");
  return /^(Module|Cell)$/.test(parts[0]) && parts.length > 3 ? parts.slice(1, -3).join(".") : null;
}

class Layers {
  constructor(comparison) {
    this.ranks = comparison.ranks.length;
    this.root = new Layer("", "", null, this.ranks);
    this.known = new Map();
    this.byEntry = comparison.ranks.map((rank) => new Array(rank.entries.length));
    for (const rank of comparison.ranks) this.add(rank);
    this.inRanges(this.root);
  }

  add(rank) {
    for (const group of rank.groups) {
      if (group.entry === NO_ENTRY) continue;
      const layer = (this.byEntry[rank.index][group.entry] ??= this.layerOf(rank, group.entry));
      for (let row = group.first; row < group.last; ++row) {
        layer.take(rank.index, rank.grades[row], rank.errors?.[row], group.blamed || rank.grades[row] === GRADE.introduced);
      }
    }
    for (const layer of this.known.values()) {
      for (let above = layer.parent; above !== null; above = above.parent) {
        above.take(rank.index, layer.grades[rank.index], layer.errors[rank.index], layer.introduced[rank.index]);
      }
    }
  }

  // The nearest module around it; operations outside of any stand by their own names.
  layerOf(rank, entry) {
    for (let at = entry; at >= 0; at = rank.parents[at] ?? -1) {
      const path = moduleOf(rank.entries[at]);
      if (path !== null) return path === "" ? this.child(this.root, "(model)", "(model)") : this.atPath(path);
    }
    const operation = withoutDirection(rank.entries[entry]).replace(/\.[0-9]+$/, "");
    return this.child(this.root, operation, operation);
  }

  atPath(path) {
    let layer = this.root;
    let end = -1;
    do {
      const begin = end + 1;
      end = path.indexOf(".", begin);
      if (end < 0 || layer.depth === DEEPEST_LAYER) end = path.length;
      layer = this.child(layer, path.slice(0, end), path.slice(begin, end));
    } while (end < path.length);
    return layer;
  }

  child(parent, path, label) {
    let layer = this.known.get(path);
    if (layer === undefined) {
      layer = new Layer(label, path, parent, this.ranks);
      this.known.set(path, layer);
      parent.children.push(layer);
    }
    return layer;
  }

  // A thousand layers in one list show nothing at a glance.
  inRanges(layer) {
    const { children } = layer;
    for (const child of children) this.inRanges(child);
    if (children.length <= MOST_CHILDREN) return;
    const size = Math.ceil(Math.sqrt(children.length));
    layer.children = [];
    for (let at = 0; at < children.length; at += size) {
      const part = children.slice(at, at + size);
      const label = `${part[0].label} \u2026 ${part.at(-1).label}`;
      const range = this.child(layer, `${part[0].path} \u2026 ${part.at(-1).path}`, label);
      range.children = part;
      for (const child of part) {
        child.parent = range;
        for (let rank = 0; rank < this.ranks; ++rank) range.take(rank, child.grades[rank], child.errors[rank], child.introduced[rank]);
      }
    }
    this.deepen(layer);
  }

  deepen(layer) {
    for (const child of layer.children) {
      child.depth = layer.depth + 1;
      this.deepen(child);
    }
  }

  // As deep as there is room, and down to where errors are introduced.
  unfold(lines) {
    let level = [this.root];
    let shown = 0;
    while (level.length > 0) {
      const next = level.flatMap((layer) => layer.children);
      if (shown + next.length > lines && level[0] !== this.root) break;
      for (const layer of level) layer.open = true;
      shown += next.length;
      level = next.filter((layer) => layer.children.length > 0);
    }
    for (const layer of this.known.values()) {
      if (!layer.introduced.includes(1)) continue;
      for (let above = layer.parent; above !== null; above = above.parent) above.open = true;
    }
  }

  lines() {
    const lines = [];
    const pending = [...this.root.children].reverse();
    while (pending.length > 0) {
      const layer = pending.pop();
      lines.push(layer);
      if (layer.open) for (let i = layer.children.length - 1; i >= 0; --i) pending.push(layer.children[i]);
    }
    return lines;
  }
}
