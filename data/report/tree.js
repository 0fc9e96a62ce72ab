// SPDX-License-Identifier: Apache-2.0
// The model as a tree: modules by construct.json where the target has one, else by the dots in the names. A
// node has the colour of the worst row below it, stronger for larger errors.
"use strict";

const TREE_LINE = 24;

class TreeNode {
  constructor(label, title, parent) {
    Object.assign(this, { label, title, parent, children: [], open: false, place: null });
    this.depth = parent === null ? 0 : parent.depth + 1;
    this.counts = new Array(GRADES.length).fill(0); // rows at and below it, by grade
    this.error = 0; // the largest
    this.blamed = false; // it, or something below it
  }

  worst() {
    return Math.max(0, this.counts.findLastIndex((number) => number > 0));
  }

  isIn(other) {
    let node = this;
    while (node !== null && node !== other) node = node.parent;
    return node !== null;
  }
}

// The modules in each other, without a place on the page.
class ModuleTree {
  constructor(ranks) {
    this.roots = [];
    this.nodes = new Map(); // by parent and name, so that ranks share them
    this.byEntry = []; // by rank
    for (const rank of ranks) {
      this.byEntry[rank.index] = new Array(rank.entries.length);
      this.add(rank);
    }
    this.sum();
  }

  add(rank) {
    for (const group of rank.groups) {
      const node = this.nodeOf(rank, group);
      node.place ??= { rank, row: group.first };
      node.blamed ||= group.blamed;
      for (let row = group.first; row < group.last; ++row) {
        node.counts[rank.grades[row]] += 1;
        if (rank.errors?.[row] > node.error) node.error = rank.errors[row];
      }
    }
  }

  // Upwards: a node is made after the node around it.
  sum() {
    for (const { parent, counts, error, blamed } of [...this.nodes.values()].reverse()) {
      if (parent === null) continue;
      for (let grade = 0; grade < counts.length; ++grade) parent.counts[grade] += counts[grade];
      if (error > parent.error) parent.error = error;
      parent.blamed ||= blamed;
    }
  }

  nodeOf(rank, group) {
    const { entry, first } = group;
    if (entry === NO_ENTRY) return this.child(this.root(DIRECTIONS[0]), rank.name(first), rank.name(first));
    const known = this.byEntry[rank.index];
    known[entry] ??= rank.parents.length > 0 ? this.byModules(rank, entry) : this.byDots(rank, entry);
    return known[entry];
  }

  nodeAt(rank, row) {
    return this.nodeOf(rank, rank.groups[rank.groupOf[row]]);
  }

  rootOf(rank, entry) {
    return this.root(DIRECTIONS[rank.directions[entry]]);
  }

  root(label) {
    let root = this.nodes.get(label);
    if (root === undefined) {
      root = new TreeNode(label, label, null);
      root.number = this.nodes.size;
      this.nodes.set(label, root);
      this.roots.push(root);
      this.roots.sort((a, b) => DIRECTIONS.indexOf(a.label) - DIRECTIONS.indexOf(b.label));
    }
    return root;
  }

  child(parent, key, label) {
    const whole = `${parent.number} ${key}`;
    let node = this.nodes.get(whole);
    if (node === undefined) {
      node = new TreeNode(label, key, parent);
      node.number = this.nodes.size;
      this.nodes.set(whole, node);
      parent.children.push(node);
    }
    return node;
  }

  byModules(rank, entry) {
    const chain = [];
    for (let at = entry; at >= 0; at = rank.parents[at]) chain.push(at);
    let node = this.rootOf(rank, entry);
    let path = "";
    for (const one of chain.reverse()) {
      const name = rank.entries[one];
      const key = rank.entryIsOnlyGolden(one) ? `${name} (only in golden)` : name;
      node = this.child(node, key, withoutDirection(name.startsWith(path) ? name.slice(path.length) : name));
      path = modulePath(name);
    }
    return node;
  }

  byDots(rank, entry) {
    const name = rank.entries[entry];
    const parts = withoutDirection(name).split(".");
    const leaf = parts.splice(/^(Module|Cell)\./.test(name) ? -2 : -1).join(".");
    let node = this.rootOf(rank, entry);
    let path = "";
    for (const part of parts) {
      path += part + ".";
      node = this.child(node, path, part);
    }
    const key = rank.entryIsOnlyGolden(entry) ? `${name} (only in golden)` : name;
    return this.child(node, key, /^[0-9]+$/.test(leaf) ? `call ${leaf}` : leaf);
  }

  openTo(node) {
    for (let above = node.parent; above !== null; above = above.parent) above.open = true;
  }

  countsOf(node) {
    const counts = node.counts.map((number, grade) => (number > 0 ? `${count(number)} ${GRADES[grade].name}` : ""));
    return counts.filter(Boolean).reverse().join(", ") + (node.error > 0 ? `; largest error ${briefly(Number(node.error.toPrecision(3)))}` : "");
  }

  // The node of a direction with this title, or null.
  named(direction, title) {
    for (const node of this.nodes.values()) {
      let root = node;
      while (root.parent !== null) root = root.parent;
      if (node.title === title && root.label === direction) return node;
    }
    return null;
  }
}

class ModelTree extends ModuleTree {
  constructor(box, { comparison, choose, first }) {
    super(comparison.ranks);
    this.comparison = comparison;
    this.choose = choose;
    if (first) this.openTo(this.nodeAt(first.rank, first.row));
    else this.roots.forEach((root) => (root.open = true));
    this.list = new LongList(box, {
      lineHeight: TREE_LINE,
      line: (index) => this.line(this.lines[index]),
      open: (index, event) => this.pick(this.lines[index], event),
      move: (event, index) => this.move(event, index),
    });
    this.selected = null;
    this.show();
  }

  show(active = -1) {
    this.lines = [];
    const pending = [...this.roots].reverse();
    while (pending.length > 0) {
      const node = pending.pop();
      this.lines.push(node);
      if (node.open) for (let i = node.children.length - 1; i >= 0; --i) pending.push(node.children[i]);
    }
    this.list.show(this.lines.length, active);
  }

  line(node) {
    const hasChildren = node.children.length > 0;
    const made = element("div", {
      class: `node ${GRADES[node.worst()].mark}${node.blamed ? " blamed" : ""}${node === this.selected ? " selected" : ""}`,
      role: "treeitem",
      "aria-level": node.depth + 1,
      "aria-selected": String(node === this.selected),
      "aria-expanded": hasChildren ? String(node.open) : undefined,
      title: [node.title, this.countsOf(node)],
    });
    made.style.paddingLeft = `${6 + node.depth * 13}px`;
    made.append(
      element("span", { class: "twist", text: hasChildren ? (node.open ? "\u25be" : "\u25b8") : "" }),
      tint(element("span", { class: "dot" }), node.error, this.comparison.overview.diagnosis ? 45 : 100, 100),
      element("span", { class: "label name", text: node.label }),
    );
    const bad = node.counts.map((number, grade) => [number, grade]).filter(([number, grade]) => number > 0 && grade >= BAD);
    for (const [number, grade] of bad.reverse().slice(0, 2)) {
      made.append(element("span", { class: `tally ${GRADES[grade].mark}`, text: count(number) }));
    }
    return made;
  }

  pick(node, event) {
    if (event.target.classList?.contains("twist")) this.toggle(node, !node.open);
    else this.choose(node === this.selected ? null : node);
  }

  select(node) {
    this.selected = node;
    if (node !== null) this.openTo(node);
    this.show();
    if (node !== null) this.list.reveal(this.lines.indexOf(node));
  }

  toggle(node, open) {
    node.open = open;
    // A way without a fork is gone down at once.
    for (let only = node; open && only.children.length === 1; only = only.children[0]) only.children[0].open = true;
    this.show(this.lines.indexOf(node));
  }

  move(event, index) {
    const node = this.lines[index];
    if (node === undefined) return false;
    if (event.key === "ArrowRight") {
      if (node.children.length > 0 && !node.open) this.toggle(node, true);
      else if (node.open) this.list.reveal(index + 1);
    } else if (event.key === "ArrowLeft") {
      if (node.open) this.toggle(node, false);
      else if (node.parent !== null) this.list.reveal(this.lines.indexOf(node.parent));
    } else {
      return false;
    }
    return true;
  }
}

// `a.b.forward.0` and `a.b.0.forward` without the direction.
function withoutDirection(name) {
  return name.replace(/\.(forward|backward|parameters_grad)(?=\.[^.]*$|$)/, "");
}

// The beginning of the names of a module's parts: `Module.layers.0.` of `Module.layers.0.Layer.forward.0`.
function modulePath(name) {
  const parts = name.split(".");
  return parts.length > 3 ? parts.slice(0, -3).join(".") + "." : "";
}
