// SPDX-License-Identifier: Apache-2.0
// The model as a graph: a tree of boxes of which those in sight are elements, and the edges between them.
"use strict";

const MOST_EDGES = 800; // that are drawn at once
const AROUND = 200; // pixels beyond the edges of the view, so that scrolling shows no gaps
const DEEPEST_INDENT = 14;
const KEYS_OF_GRAPH = "Graph of the model: arrows walk, Enter selects, Space opens and closes a box, p goes to the partner on another rank";
const NO_FLOW = "These dumps do not show which entry uses the output of which other (Max, Min and Norm of inputs and outputs would), so there are no edges.";

class Graph {
  // `open(id)` opens an entry; `changed()` says that the address may be another one.
  constructor(box, { comparison, open, changed, first, exchanges }) {
    Object.assign(this, { holder: box, comparison, open, changed, first });
    this.trees = [];
    this.partners = null;
    this.masks = null;
    this.active = -1;
    this.chosen = null;
    this.build();
    this.show(first?.rank ?? comparison.ranks.find((rank) => rank.rows > 0) ?? comparison.ranks[0]);
    this.goToFirst();
    exchanges.then((known) => {
      this.partners = partnersOf(known, comparison.ranks.length);
      this.draw();
    });
  }

  build() {
    const { first, comparison: { ranks } } = this;
    const choice = ({ index, label, rows }) => element("option", { value: index, text: label, disabled: rows === 0 ? "" : undefined });
    this.menu = element("select", { id: "graph-rank" }, ...ranks.map(choice));
    this.menu.addEventListener("change", () => this.choose(null, ranks[this.menu.value]));
    this.matches = element("span", { class: "muted", role: "status" });
    const step = (text, label, by) =>
      element("button", { text, "aria-label": label, title: label, onclick: () => this.goToMatch(by) });
    this.steps = element("span", { class: "steps-of", hidden: "" },
      step("\u2039", "Box before that matches", -1), this.matches, step("\u203a", "Next box that matches", 1));
    const button = (text, onclick, title) => element("button", { text, onclick, title });
    this.told = element("p", { class: "muted path" });
    this.note = element("p", { class: "muted", id: "graph-note" });
    this.box = element("div", { id: "boxes", role: "tree", tabindex: "0", "aria-label": KEYS_OF_GRAPH });
    this.body = element("div", { class: "lines", role: "presentation" });
    this.arcs = this.holder.querySelector("svg");
    this.box.append(this.body);
    this.holder.append(
      element("div", { class: "line" },
        ...(ranks.length > 1 ? [element("label", {}, "Rank ", this.menu)] : []),
        ...(first ? [button(first.mark === "introduced" ? "To the culprit" : `To the first ${first.mark}`, () => this.goToFirst())] : []),
        button("Close all", () => this.closeAll(), "Close all boxes"), this.steps),
      this.told, this.box, legend(), this.note);
    this.box.addEventListener("scroll", () => this.draw());
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.click(event));
    this.body.addEventListener("dblclick", (event) => {
      const node = this.nodeUnder(event);
      if (node?.place && !event.target.closest(".twist, button")) this.toggle(node);
    });
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  // The graph of a rank, made when it is first asked for.
  show(rank) {
    if (this.tree?.rank === rank) return;
    this.menu.value = rank.index;
    this.tree = this.trees[rank.index] ??= this.madeOf(rank);
    this.chosen = null;
    this.note.textContent = this.tree.edges.size > 0 ? "" : NO_FLOW;
    this.note.hidden = this.tree.edges.size > 0;
    this.findMatches();
    this.lay();
  }

  madeOf(rank) {
    const tree = new GraphTree(rank);
    tree.roots.forEach((root) => (root.open = true));
    for (const node of tree.boxes) if (tree.roots.length < 3 && node.depth === 1 && onlyBox(node)) node.open = true;
    return tree;
  }

  lay(active = null) {
    this.tree.lay();
    this.active = active === null ? -1 : active.line;
    this.body.style.height = `${this.tree.height}px`;
    this.draw();
  }

  // Where everything begins: what is to blame, in the middle.
  goToFirst() {
    if (this.first) this.choose(this.first.row, this.first.rank);
  }

  // An entry by its row, or the beginning of a rank.
  choose(row, rank) {
    this.show(rank);
    if (row === null) {
      this.box.scrollTop = 0;
      this.chosen = null;
      this.lay();
    } else {
      this.chosen = this.tree.nodeAt(rank, row);
      this.goTo(this.chosen);
    }
    this.changed();
  }

  goTo(node) {
    this.tree.openTo(node);
    this.lay(node);
    this.reveal(node.line, true);
  }

  // As an address names it; false if there is nothing of the kind.
  chooseNamed(label, root, title) {
    const rank = this.comparison.ranks.find((one) => one.label === label && one.rows > 0);
    if (!rank) return false;
    this.show(rank);
    const node = this.tree.named(root, title);
    if (node === null) return false;
    this.chosen = node;
    this.goTo(node);
    return true;
  }

  address() {
    if (this.chosen === null) return [this.tree.rank.label];
    let root = this.chosen;
    while (root.parent !== null) root = root.parent;
    return [this.tree.rank.label, root.label, this.chosen.title];
  }

  // The text that `c` copies.
  current() {
    return this.tree.lines[this.active]?.title ?? null;
  }

  // masks: the rows that are kept, by rank; null: all.
  filter(masks) {
    this.masks = masks;
    this.findMatches();
    this.draw();
  }

  findMatches() {
    const { tree, masks } = this;
    tree.kept = null;
    this.steps.hidden = masks === null;
    this.places = [];
    if (masks === null) return;
    const mask = masks[tree.rank.index];
    const kept = new Uint32Array(tree.boxes.length + 1); // how many boxes ahead of one match
    for (const group of tree.rank.groups) {
      const from = tree.nodeOf(tree.rank, group).from;
      for (let row = group.first; mask !== null && kept[from + 1] === 0 && row < group.last; ++row) kept[from + 1] = mask[row];
    }
    for (let i = 0; i < tree.boxes.length; ++i) {
      if (kept[i + 1] > 0) this.places.push(i);
      kept[i + 1] += kept[i];
    }
    tree.kept = kept;
    this.matches.textContent = `${count(this.places.length)} match`;
  }

  matchesIn(node) {
    const { kept } = this.tree;
    return kept === null ? 0 : kept[node.to] - kept[node.from];
  }

  goToMatch(by) {
    if (this.places.length === 0) return;
    const here = this.tree.lines[this.active]?.from ?? -1;
    let place = by > 0 ? this.places.findIndex((from) => from > here) : this.places.findLastIndex((from) => from < here);
    if (place < 0) place = by > 0 ? 0 : this.places.length - 1;
    this.chosen = this.tree.boxes[this.places[place]];
    this.goTo(this.chosen);
    this.matches.textContent = `${count(place + 1)} of ${count(this.places.length)}`;
    this.changed();
  }

  closeAll() {
    for (const node of this.tree.boxes) node.open = node.depth === 0;
    this.chosen = null;
    this.lay();
    this.box.scrollTop = 0;
    this.changed();
  }

  toggle(node) {
    if (node.children.length === 0) return;
    node.open = !node.open;
    // A way without a fork is gone down at once.
    for (let only = node; node.open && onlyBox(only); only = only.children[0]) only.children[0].open = true;
    this.lay(node);
  }

  nodeUnder(event) {
    const line = event.target.closest?.("[data-line]")?.dataset.line;
    return line === undefined ? undefined : this.tree.lines[line];
  }

  click(event) {
    const node = this.nodeUnder(event);
    if (node === undefined) return;
    this.active = node.line;
    if (event.target.closest(".partner")) this.goToPartner(node);
    else if (event.target.closest(".twist")) this.toggle(node);
    else this.pick(node);
  }

  // Opens an entry; opens or closes a box that is not an entry.
  pick(node) {
    this.chosen = node;
    if (node.place && !node.isFold) {
      this.draw();
      this.changed();
      this.open(this.comparison.id(node.place.rank, node.place.row), this.box);
    } else {
      this.toggle(node);
      this.changed();
    }
  }

  goToPartner(node) {
    const partners = this.partnersAt(node);
    if (partners.length === 0) return;
    // Round and round through the ranks of a group.
    const next = partners.find(([rank]) => rank > this.tree.rank.index) ?? partners[0];
    const rank = this.comparison.ranks[next[0]];
    const group = rank.groups.find(({ entry }) => entry === next[1]);
    if (group) this.choose(group.first, rank);
    this.box.focus({ preventScroll: true });
  }

  partnersAt(node) {
    return node.entry === undefined ? [] : (this.partners?.[this.tree.rank.index].get(node.entry) ?? []);
  }

  key(event) {
    if (event.target !== this.box || event.ctrlKey || event.metaKey || event.altKey) return;
    const { lines } = this.tree;
    const page = Math.max(1, Math.floor(this.box.clientHeight / (GRAPH_SIZES.box + GRAPH_SIZES.gap)) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -lines.length, End: lines.length };
    const node = lines[this.active];
    if (event.key in steps) {
      const next = this.active < 0 ? this.tree.lineAt(this.box.scrollTop) : this.active + steps[event.key];
      this.reveal(Math.min(lines.length - 1, Math.max(0, next)));
    } else if (node === undefined) {
      return;
    } else if (event.key === "Enter") {
      this.pick(node);
    } else if (event.key === " ") {
      this.toggle(node);
    } else if (event.key === "ArrowRight") {
      if (node.children.length > 0 && !node.open) this.toggle(node);
      else if (node.open) this.reveal(this.active + 1);
    } else if (event.key === "ArrowLeft") {
      if (node.open && node.children.length > 0) this.toggle(node);
      else if (node.parent !== null) this.reveal(node.parent.line);
    } else if (event.key === "p") {
      this.goToPartner(node);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  reveal(line, centred = false) {
    const node = this.tree.lines[line];
    if (node === undefined) return;
    this.active = line;
    const { box } = this;
    const room = box.clientHeight - GRAPH_SIZES.box - GRAPH_SIZES.gap;
    if (centred || Math.abs(node.top - box.scrollTop - room / 2) > room) box.scrollTop = node.top - room / 2;
    else if (node.top - GRAPH_SIZES.gap < box.scrollTop) box.scrollTop = node.top - GRAPH_SIZES.gap;
    else if (node.top > box.scrollTop + room) box.scrollTop = node.top - room;
    this.draw();
  }

  measure() {
    const width = this.box.clientWidth;
    const gutter = Math.min(190, Math.max(64, Math.round(width * 0.24)));
    this.indent = width < 500 ? 7 : 14;
    this.right = Math.min(width - gutter - 6, 720);
    this.gutter = gutter;
  }

  left(node) {
    return 8 + Math.min(node.depth, DEEPEST_INDENT) * this.indent;
  }

  draw() {
    const { box, tree } = this;
    if (box.clientHeight === 0) return; // not in sight
    this.measure();
    const [top, bottom] = [box.scrollTop - AROUND, box.scrollTop + box.clientHeight + AROUND];
    const first = tree.lineAt(top);
    let last = first;
    const around = new Set();
    const made = [];
    for (; last < tree.lines.length && tree.lines[last].top < bottom; ++last) {
      const node = tree.lines[last];
      let above = isOpen(node) ? node : node.parent;
      for (; above !== null && !around.has(above); above = above.parent) around.add(above);
      made.push(this.line(node));
    }
    const frames = [...around].sort((a, b) => a.from - b.from).map((node) => this.frame(node, top, bottom));
    this.drawArcs(first, last, top, bottom);
    this.body.replaceChildren(...frames, this.arcs, ...made);
    if (this.active >= first && this.active < last) box.setAttribute("aria-activedescendant", `box-${this.active}`);
    else box.removeAttribute("aria-activedescendant");
    this.tell();
  }

  // Shows the boxes around the top of the view.
  tell() {
    const labels = [];
    const line = this.tree.lines[this.tree.lineAt(this.box.scrollTop)];
    for (let above = line?.parent ?? null; above !== null; above = above.parent) labels.unshift(above.label);
    this.told.textContent = shown(labels.join(" \u203a ")) || "\u00a0";
  }

  // The visible part of an open box around its contents.
  frame(node, top, bottom) {
    const made = element("div", { class: `frame ${GRADES[node.worst()].mark}${node.side ? " alone" : ""}` });
    const [from, to] = [Math.max(node.top, top - 20), Math.min(node.bottom, bottom + 20)];
    const left = this.left(node);
    const right = this.right + this.gutter - 4 - Math.min(node.depth, DEEPEST_INDENT) * 5;
    Object.assign(made.style, { left: `${left}px`, width: `${right - left}px`, top: `${from}px`, height: `${to - from}px` });
    return made;
  }

  line(node) {
    const hasChildren = node.children.length > 0;
    const open = isOpen(node);
    const worst = node.worst();
    const grade = GRADES[worst];
    const judged = this.tree.rank.errors !== null;
    const matches = this.tree.kept === null ? 1 : this.matchesIn(node);
    const isCulprit = this.first?.mark === "introduced" && node.blamed && !open && (hasChildren || node.place?.rank === this.first.rank);
    const states = [
      [open, "opened"], [node.side, "alone"], [node.blamed, "blamed"], [matches === 0, "dim"],
      [node === this.chosen, "selected"], [node.line === this.active, "active"],
    ];
    const made = element("div", {
      class: ["gbox", grade.mark, hasChildren ? "module" : "operation", ...states.filter(([is]) => is).map(([, name]) => name)].join(" "),
      id: `box-${node.line}`,
      role: "treeitem",
      "aria-level": node.depth + 1,
      "aria-expanded": hasChildren ? String(open) : undefined,
      "aria-selected": String(node === this.chosen),
      "data-line": node.line,
      title: this.title(node),
    });
    tint(made, node.error, ...(judged ? (worst >= BAD ? [14, 40] : [4, 22]) : [20, 20]));
    const left = this.left(node);
    Object.assign(made.style, { left: `${left}px`, top: `${node.top}px`, width: `${Math.max(60, this.right - left)}px` });
    made.append(
      element("span", { class: "twist", text: hasChildren ? (open ? "\u25be" : "\u25b8") : "" }),
      element("span", { class: "dot" }),
      element("span", { class: "label name", text: node.label }));
    const tell = (text, kind = "muted") => made.append(element("span", { class: kind, text }));
    if (isCulprit) made.append(element("b", { class: "badge introduced", text: hasChildren ? "culprit inside" : "culprit" }));
    if (node.side) tell(`${node.side} only`, "side muted");
    if (this.tree.kept !== null && hasChildren && matches > 0) tell(`${count(matches)} match`);
    if (node.alike) tell(`${count(node.alike)} of a kind`);
    if (hasChildren && !open) {
      const bad = node.counts.map((number, index) => [number, index]).filter(([number, index]) => number > 0 && index >= BAD);
      for (const [number, index] of bad.reverse().slice(0, 2)) tell(count(number), `tally ${GRADES[index].mark}`);
    } else if (!hasChildren && judged && node.error > 0) {
      tell(briefly(Number(node.error.toPrecision(2))), "tally muted");
    }
    const partners = this.partnersAt(node);
    if (partners.length > 0) made.append(this.partner(partners));
    return made;
  }

  title(node) {
    const lines = [node.title, this.tree.countsOf(node)];
    if (node.side) lines.push(`on the ${node.side} side only`);
    return lines;
  }

  // The mark of communication; it leads to the other side.
  partner(partners) {
    const { ranks } = this.comparison;
    const told = partners.slice(0, 8).map(([rank, entry]) => `${ranks[rank].label}: ${ranks[rank].entries[entry]}`);
    const text = partners.length === 1 ? this.comparison.briefLabel(ranks[partners[0][0]]) : plural(partners.length, "rank");
    return element("button", {
      class: "partner",
      tabindex: "-1",
      text: `\u21c4 ${text}`,
      title: ["Go to", ...told, ...(partners.length > told.length ? ["\u2026"] : [])],
      "aria-label": shown(`Communicates with ${told.join(", ")}: go there`),
    });
  }

  drawArcs(first, last, top, bottom) {
    const paths = { golden: [], plain: [], propagated: [], introduced: [], chosen: [] };
    const kinds = ["golden", "plain", "propagated", "introduced"];
    const { lines, outgoing, incoming } = this.tree;
    const chosen = this.chosen === null ? -1 : this.chosen.line;
    let left = MOST_EDGES;
    const put = (edge, path) => {
      const isChosen = this.chosen !== null && (edge.from === chosen || edge.to === chosen);
      paths[isChosen ? "chosen" : kinds[edge.kind]].push(path);
      left -= 1;
    };
    const isNear = (line) => line >= first && line < last;
    // Only the worst edge that leads out of sight is drawn.
    const worst = (list, end) => list.filter((edge) => !isNear(edge[end])).reduce((most, edge) => (most?.kind >= edge.kind ? most : edge), null);
    for (let line = first; line < last && left > 0; ++line) {
      const [below, above] = [outgoing[line] ?? [], incoming[line] ?? []];
      for (const edge of below) if (isNear(edge.to) && left > 0) put(edge, this.path(lines[line], lines[edge.to], edge.to === line + 1));
      const [given, taken] = [worst(below, "to"), worst(above, "from")];
      if (given !== null) put(given, this.stub(lines[line], given.to > line, false));
      if (taken !== null) put(taken, this.stub(lines[line], taken.from > line, true));
    }
    this.arcs.replaceChildren();
    for (const [kind, list] of Object.entries(paths)) {
      if (list.length === 0) continue;
      const path = document.createElementNS(this.arcs.namespaceURI, "path");
      path.setAttribute("class", kind);
      path.setAttribute("d", list.join(""));
      this.arcs.append(path);
    }
    const y = Math.max(0, top);
    const height = Math.max(0, Math.min(bottom, this.tree.height) - y);
    const width = this.right + this.gutter;
    this.arcs.setAttribute("viewBox", `0 ${y} ${width} ${height}`);
    Object.assign(this.arcs.style, { top: `${y}px`, height: `${height}px`, width: `${width}px` });
  }

  // Straight down to the next box in the same one, else around the boxes between them.
  path(from, to, isNext) {
    const [a, b] = [from, to].map((node) => Math.round((node.top + node.bottom) / 2));
    if (isNext && from.parent === to.parent) {
      const x = this.left(to) + 24;
      return `M${x} ${from.bottom}V${to.top}${arrow(x, to.top, "down")}`;
    }
    const bulge = 14 + (this.gutter - 34) * (1 - Math.exp(-Math.abs(b - a) / 320));
    const x = this.right;
    const lane = Math.round(x + bulge * 1.33);
    // The incoming and the outgoing end are beside each other, so that they can be distinguished.
    const [y, z] = [a + 4, b - 4];
    return `M${x} ${y}C${lane} ${y} ${lane} ${z} ${x + 1} ${z}${arrow(x, z, "left")}`;
  }

  // To or from what is out of sight.
  stub(node, down, incoming) {
    const x = this.right;
    const y = Math.round((node.top + node.bottom) / 2) + (incoming ? -4 : 4);
    const end = y + (down ? 16 : -16);
    const lane = x + Math.round(this.gutter * 0.55);
    return `M${x} ${y}Q${lane - 8} ${y} ${lane} ${end}${incoming ? arrow(x, y, "left") : arrow(lane, end, down ? "down" : "up")}`;
  }
}

function arrow(x, y, towards) {
  if (towards === "left") return `M${x + 6} ${y - 4}L${x + 1} ${y}L${x + 6} ${y + 4}`;
  const back = towards === "down" ? -6 : 6;
  return `M${x - 4} ${y + back}L${x} ${y}L${x + 4} ${y + back}`;
}

function isOpen(node) {
  return node.open && node.children.length > 0;
}

// Does a box hold nothing but another one?
function onlyBox(node) {
  return node.children.length === 1 && node.children[0].children.length > 0;
}

// For each rank: for each entry of communication those of other ranks, as [rank, entry].
function partnersOf(exchanges, ranks) {
  const partners = Array.from({ length: ranks }, () => new Map());
  for (const places of exchanges) {
    const calls = [];
    for (let at = 0; at < places.length; at += 2) calls.push([places[at], places[at + 1]]);
    for (const [rank, entry] of calls) {
      const known = partners[rank].get(entry) ?? new PartnerList();
      known.lists.push(calls);
      partners[rank].set(entry, known);
    }
  }
  return partners.map((one, rank) => ({ get: (entry) => one.get(entry)?.besides(rank) }));
}

// A group of a thousand ranks is one list, not a thousand.
class PartnerList {
  constructor() {
    this.lists = [];
  }

  besides(rank) {
    return this.lists.flatMap((calls) => calls.filter(([other]) => other !== rank));
  }
}

function legend() {
  const key = (kind, text) => element("span", {}, element("i", { class: `key ${kind}` }), text);
  return element("div", { class: "legend muted", "aria-hidden": "true" },
    key("arc", "uses the output of the other"),
    key("arc propagated", "with an error"),
    key("dashed", "on one side only"),
    element("span", { text: "\u21c4 communication with other ranks" }));
}
