// SPDX-License-Identifier: Apache-2.0
// Puts the page together: unpacks the data, and keeps filters, curve, tree, table and panel in step.
"use strict";

const SEARCH_DELAY_MS = 150;
const VIEWS = ["curve", "map", "graph"];

class Filters {
  constructor(comparison, changed) {
    this.comparison = comparison;
    this.changed = changed;
    this.words = [];
    this.node = null; // of the tree
    this.place = null; // of the map: a layer, on some ranks or (null) on all
    this.on = { origin: new Set(), verdict: new Set(), direction: new Set(), step: new Set(), rank: new Set() }; // empty: all
    this.lower = comparison.ranks.map(() => null);
  }

  active() {
    const { origin, verdict, direction } = this.on;
    return this.words.length > 0 || this.node !== null || this.place !== null || origin.size + verdict.size + direction.size > 0;
  }

  // Also where whole ranks are left out.
  any() {
    return this.active() || this.on.step.size + this.on.rank.size > 0;
  }

  clear() {
    this.words = [];
    this.node = this.place = null;
    for (const set of Object.values(this.on)) set.clear();
  }

  lets(kind, value) {
    const on = this.on[kind];
    return on.size === 0 || on.has(value);
  }

  // Adds chips until the rows include the opened row. Returns whether it added one.
  admit(rank, row) {
    const { steps, rankNames } = this.comparison;
    const values = {
      origin: rank.grades[row],
      verdict: rank.verdicts[row],
      direction: rank.direction(row),
      step: steps.indexOf(rank.about.step),
      rank: rankNames.indexOf(rank.about.rank),
    };
    const kept = Object.entries(values).filter(([kind, value]) => !this.lets(kind, value));
    for (const [kind, value] of kept) this.on[kind].add(value);
    return kept.length > 0;
  }

  shows(rank) {
    const { steps, rankNames } = this.comparison;
    const ranks = this.place?.ranks ?? null;
    if (ranks !== null && (rank.index < ranks.first || rank.index > ranks.last)) return false;
    return this.lets("step", steps.indexOf(rank.about.step)) && this.lets("rank", rankNames.indexOf(rank.about.rank));
  }

  // The rows of a rank that pass; null if no row can.
  mask(rank, tree, map) {
    if (!this.shows(rank) || rank.rows === 0) return null;
    const layers = this.place === null ? null : map.layers.byEntry[rank.index];
    const entries = new Uint8Array(rank.entries.length);
    for (let entry = 0; entry < entries.length; ++entry) {
      const inNode = this.node === null || tree.byEntry[rank.index][entry]?.isIn(this.node);
      const inPlace = layers === null || layers[entry]?.isIn(this.place.layer);
      entries[entry] = inNode && inPlace && this.lets("direction", rank.directions[entry]) ? 1 : 0;
    }
    const alone = this.node === null && layers === null && this.lets("direction", 0); // rows of no entry
    const words = this.words.map((word) => this.wordTest(rank, word));
    const mask = new Uint8Array(rank.rows);
    for (let row = 0; row < rank.rows; ++row) {
      if (!this.lets("verdict", rank.verdicts[row]) || !this.lets("origin", rank.grades[row])) continue;
      const entry = rank.entryOf(row);
      if (entry === NO_ENTRY ? !alone : entries[entry] === 0) continue;
      if (words.every((test) => test(row))) mask[row] = 1;
    }
    return mask;
  }

  // Names and messages; texts that rows share are looked at once.
  wordTest(rank, word) {
    this.lower[rank.index] ??= {
      entries: rank.entries.map((text) => text.toLowerCase()),
      messages: rank.byName.get("Err_message").texts.map((text) => text.toLowerCase()),
      suffixes: rank.columns[0].texts.map((text) => text.toLowerCase()),
    };
    const lower = this.lower[rank.index];
    const has = (text) => text.includes(word);
    const [entries, messages, suffixes] = [lower.entries.map(has), lower.messages.map(has), lower.suffixes.map(has)];
    const messageCodes = rank.byName.get("Err_message").codes;
    const suffixCodes = rank.columns[0].codes;
    const acrossParts = word.includes(".");
    return (row) => {
      const entry = rank.entryOf(row);
      return (entry !== NO_ENTRY && entries[entry]) || suffixes[suffixCodes[row] - 1] || messages[messageCodes[row] - 1] ||
        (acrossParts && rank.name(row).toLowerCase().includes(word));
    };
  }
}

class Report {
  constructor(comparison) {
    this.comparison = comparison;
    this.filters = new Filters(comparison);
    this.settled = false; // while it is not, the address is left as it is
    this.graph = null;
    this.masks = null;
    const open = (id) => this.open(id);
    const sources = new Sources(by("editor"));
    by("of-editor").hidden = comparison.ranks.every((rank) => !rank.stacks?.length);
    this.findings = comparison.overview.diagnosis ? new Findings({ comparison, open, sources }) : null;
    this.panel = new EntryPanel(by("entry"), { comparison, open, close: () => this.close(), findings: this.findings, sources });
    this.tree = new ModelTree(by("tree"), { comparison, choose: (node) => this.chooseNode(node), first: this.first() });
    this.table = new RowTable(by("table"), { comparison, open, sorted: () => this.keepAddress() });
    this.curve = new Curve(by("curve"), { comparison, open, first: this.first(), changed: () => this.keepAddress() });
    this.map = this.findings && comparison.ranks.length > 1 ? new LayerMap(by("map"), { comparison, choose: (place) => this.choosePlace(place) }) : null;
    this.showVerdict();
    this.showChips();
    this.showViews();
    this.listen();
    this.goToAddress();
  }

  // Where to look first: the culprit; else the first bad row by the rules, as { rank, row, mark } or null.
  first() {
    const culprit = this.findings?.culprit();
    const id = culprit ? this.findings.rowOf(culprit) : null;
    if (id === null) {
      const bad = this.comparison.firstBad();
      return bad && { ...bad, mark: VERDICTS[bad.verdict] };
    }
    return { ...this.comparison.at(id), mark: "introduced" };
  }

  showVerdict() {
    const { comparison } = this;
    const sum = (key) => comparison.ranks.reduce((total, rank) => total + rank.about[key], 0);
    const [errors, warnings] = [sum("errors"), sum("warnings")];
    const failed = comparison.ranks.filter((rank) => rank.about.failure);
    const worst = errors > 0 || failed.length > 0 ? "error" : warnings > 0 ? "warning" : "pass";
    const left = sum("leftOut");
    const rows = `${plural(sum("rows") - left, "row")}${comparison.extent()}${left > 0 ? `, and ${count(left)} left out` : ""}`;
    const told = worst === "pass" ? `No difference beyond the rules in ${rows}`
      : `${plural(errors, "error")} and ${plural(warnings, "warning")} in ${rows}`;
    if (this.findings) this.showCulprit(told);
    else by("verdict").replaceChildren(element("b", { class: `badge big ${worst}`, text: worst }), element("span", { text: told }));
    const first = comparison.firstBad();
    if (first) {
      const name = first.rank.name(first.row);
      by("first").replaceChildren(
        element("span", { class: "muted", text: `First ${VERDICTS[first.verdict]} in execution order: ` }),
        element("button", { class: "link name", text: name, onclick: () => this.open(comparison.id(first.rank, first.row)) }),
        copyButton(name),
        element("span", { class: "muted", text: `${first.rank.label ? ` on ${first.rank.label}` : ""} \u2014 ${first.reason}${first.measure ? ` (${first.measure})` : ""}` }));
    }
    this.showSources(failed);
  }

  // Where it first goes wrong is the headline; what the rules say of rows follows.
  showCulprit(told) {
    this.findings.show(by("verdict"), by("place"), by("answer"));
    by("answer").hidden = false;
    const { origins } = this.comparison.overview.diagnosis;
    const counts = Object.entries(origins).map(([origin, number]) => `${count(number)} ${origin}`).join(", ");
    by("origins").textContent = `${counts}. By the rules: ${told}.`;
    by("origins").hidden = false;
  }

  showSources(failed) {
    const { overview, ranks } = this.comparison;
    const one = this.first()?.rank ?? ranks[0];
    const counts = (key, text) => {
      const total = ranks.reduce((sum, rank) => sum + rank.about[key], 0);
      return total > 0 ? [element("li", { text: `${count(total)} ${text}` })] : [];
    };
    by("notes").replaceChildren(
      ...(one ? [element("li", {}, "target ", element("span", { class: "name", text: one.about.target }), " against golden ",
        element("span", { class: "name", text: one.about.golden }), ` (${this.comparison.modes.join(", ")})`,
        ranks.length > 1 ? `, one of ${plural(ranks.length, "pair")}` : "")] : []),
      ...counts("unmatched", "rows of the target without a partner"),
      ...counts("goldenOnly", "only in golden"),
      ...counts("unreadable", "not comparable"),
      ...counts("leftOut", "left out, after the first certain evidence"),
      ...ranks.filter((rank) => rank.about.wholeLeftOut).map((rank) =>
        element("li", { text: `${rank.label}: left out, an earlier step has certain evidence` })),
      ...this.sampleNote(),
      ...failed.map((rank) => element("li", { class: "error", text: `${rank.label}: ${rank.about.failure}` })),
      ...overview.onlyOneSide.map((text) => element("li", { text: `not compared: ${text}` })));
    by("made-by").textContent = `msprobe ${overview.version}`;
  }

  // A reader may not take missing rows for equal rows.
  sampleNote() {
    const missing = this.comparison.notHere();
    if (missing === 0) return [];
    const here = this.comparison.rows;
    return [element("li", { class: "warning", text: `this page has ${count(here)} of ${count(here + missing)} rows: those that differ, their neighbours, and an even selection of the rest; model, curves, map, graph and the filters show only these, and the tables have all` })];
  }

  showChips() {
    const { ranks, steps, rankNames } = this.comparison;
    const verdicts = VERDICTS.map(() => 0);
    const grades = GRADES.map(() => 0);
    for (const rank of ranks) {
      for (const verdict of rank.verdicts) verdicts[verdict] += 1;
      rank.gradeCounts?.forEach((number, grade) => (grades[grade] += number));
    }
    const chips = (kind, items) => by(`${kind}-chips`).replaceChildren(...items.map(([value, text, mark, number]) =>
      element("button", {
        class: `chip ${mark ?? ""}`,
        "aria-pressed": "false",
        "data-kind": kind,
        "data-value": value,
        title: `Show only ${text}; another chip adds to it, a second click takes it back`,
        disabled: number === 0 ? "" : undefined,
        onclick: () => this.toggle(kind, value),
      }, element("span", { class: "swatch" }), element("span", { text }))));
    const told = grades.map((number, grade) => [grade, `${GRADES[grade].name} ${count(number)}`, GRADES[grade].mark]);
    chips("origin", this.findings ? told.filter(([grade]) => grades[grade] > 0).reverse() : []);
    chips("verdict", [2, 1, 0].map((verdict) => [verdict, `${VERDICTS[verdict]} ${count(verdicts[verdict])}`, VERDICTS[verdict], verdicts[verdict]]));
    const directions = new Set(ranks.flatMap((rank) => rank.groups.map((group) => rank.direction(group.first))));
    chips("direction", directions.size > 1 ? [...directions].sort().map((one) => [one, DIRECTIONS[one]]) : []);
    chips("step", steps.length > 1 ? steps.map((step, index) => [index, step, "step"]) : []);
    chips("rank", rankNames.length > 1 ? rankNames.map((rank, index) => [index, rank, "rank"]) : []);
    this.paintRanks();
  }

  // The curve's colours.
  paintRanks() {
    const { ranks, rankNames } = this.comparison;
    for (const chip of document.querySelectorAll(".chip.rank")) {
      const name = rankNames[Number(chip.dataset.value)];
      chip.firstChild.style.background = this.curve.rankColor(ranks.find(({ about }) => about.rank === name));
    }
  }

  // The curve, the map where there are several ranks, and the graph share one place.
  showViews() {
    const { steps, rankNames } = this.comparison;
    const across = [steps.length > 1 && "steps", rankNames.length > 1 && "ranks"].filter(Boolean).join(" and ") || "comparisons";
    by("show-map").hidden = this.map === null;
    by("show-map").textContent = `Layers by ${across}`;
    for (const name of VIEWS) by(`show-${name}`).addEventListener("click", () => this.show(name));
    by("views").addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      const there = VIEWS.filter((name) => !by(`show-${name}`).hidden);
      const step = event.key === "ArrowRight" ? 1 : there.length - 1;
      this.show(there[(there.indexOf(this.view) + step) % there.length]);
      by(`show-${this.view}`).focus();
    });
    this.show("curve");
  }

  show(view) {
    this.view = VIEWS.includes(view) && !by(`show-${view}`).hidden ? view : "curve";
    for (const name of VIEWS) {
      const chosen = name === this.view;
      by(name).hidden = !chosen;
      by(`show-${name}`).setAttribute("aria-selected", String(chosen));
      by(`show-${name}`).tabIndex = chosen ? 0 : -1;
    }
    by("of-curve").hidden = this.view !== "curve";
    document.body.classList.toggle("with-graph", this.view === "graph");
    if (this.view === "graph") this.showGraph();
    this.keepAddress();
  }

  // Made when it is first looked at; it begins where everything does, or at what is open.
  showGraph() {
    if (this.graph === null) {
      const { comparison } = this;
      this.graph = new Graph(by("graph"), {
        comparison,
        open: (id, from) => this.open(id, from),
        changed: () => this.keepAddress(),
        first: this.first(),
        exchanges: unpackJson("exchanges"),
      });
      this.graph.filter(this.masks);
    }
    this.graph.draw();
    if (this.panel.id !== null) this.showInGraph(this.panel.id);
  }

  showInGraph(id) {
    const { rank, row } = this.comparison.at(id);
    const { tree, chosen } = this.graph;
    if (tree.rank !== rank || chosen !== tree.nodeAt(rank, row)) this.graph.choose(row, rank);
  }

  toggle(kind, value) {
    const on = this.filters.on[kind];
    if (!on.delete(value)) on.add(value);
    this.apply();
  }

  listen() {
    let timer = 0;
    by("search").addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.search(), SEARCH_DELAY_MS);
    });
    by("search").addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === "ArrowDown") by("table").focus();
    });
    by("clear").addEventListener("click", () => this.clear());
    by("all-columns").addEventListener("change", (event) => {
      this.table.all = event.target.checked;
      this.table.chooseColumns();
      this.table.list.draw();
    });
    by("theme").addEventListener("click", () => this.showTheme(document.documentElement.dataset.theme === "light"));
    DARK.addEventListener("change", () => this.showTheme(DARK.matches));
    by("within").addEventListener("click", () => this.leave());
    document.addEventListener("keydown", (event) => this.key(event));
    addEventListener("hashchange", () => this.goToAddress());
  }

  key(event) {
    const typing = event.target === by("search");
    if (event.key === "/" && !typing) {
      by("search").focus();
      by("search").select();
      event.preventDefault();
    } else if (event.key === "c" && event.target.tagName !== "INPUT" && !(event.ctrlKey || event.metaKey || event.altKey)) {
      if (this.graph !== null && event.target === this.graph.box && this.graph.current() !== null) {
        copyAndTell(this.graph.current());
        return;
      }
      const id = this.panel.id ?? this.table.current();
      if (id === null) return;
      const { rank, row } = this.comparison.at(id);
      copyAndTell(rank.name(row));
    } else if (event.key === "Escape") {
      if (this.panel.id !== null) this.close();
      else if (this.filters.any() || by("search").value !== "") this.clear();
    } else if (event.target === document.body || event.target === this.title()) {
      // Nothing else takes these keys there.
      this.table.takeKey(event);
    }
  }

  // The title of the panel, which gets the focus when an entry is opened.
  title() {
    return by("entry").querySelector("h2");
  }

  search() {
    this.filters.words = by("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    this.apply();
  }

  clear() {
    const id = this.table.current();
    this.filters.clear();
    by("search").value = "";
    this.tree.select(null);
    this.map?.select(null);
    this.apply();
    if (id !== null) this.table.reveal(id);
  }

  // Out of the module or layer that the rows are kept to.
  leave() {
    this.filters.node = this.filters.place = null;
    this.tree.select(null);
    this.map?.select(null);
    this.apply();
    by("table").focus();
  }

  chooseNode(node) {
    this.filters.node = node;
    this.tree.select(node);
    this.apply();
    if (node?.place) this.open(this.comparison.id(node.place.rank, node.place.row), by("tree"));
  }

  choosePlace(place) {
    this.filters.place = place;
    this.map.select(place);
    this.apply();
  }

  apply() {
    const { filters, comparison } = this;
    const masks = comparison.ranks.map((rank) => filters.mask(rank, this.tree, this.map));
    this.table.filter((rank) => masks[rank.index]);
    const ranksShown = new Set(comparison.ranks.filter((rank) => filters.shows(rank)).map((rank) => rank.index));
    this.curve.filter(filters.active() ? masks : null, ranksShown);
    this.masks = filters.active() ? masks : null;
    this.graph?.filter(this.masks);
    for (const chip of document.querySelectorAll(".chip[data-kind]")) {
      const on = filters.on[chip.dataset.kind];
      chip.setAttribute("aria-pressed", String(on.has(Number(chip.dataset.value))));
      chip.parentElement.classList.toggle("chosen", on.size > 0);
    }
    const kept = this.table.order.length;
    const compared = comparison.ranks.reduce((sum, rank) => sum + rank.about.rows, 0);
    const missing = comparison.notHere();
    const alone = comparison.rows + missing - compared;
    const all = plural(compared, "row") + (alone > 0 ? ` + ${count(alone)} only in golden` : "") +
      (missing > 0 ? `, ${count(missing)} of them not on this page` : "");
    by("kept").textContent = kept === comparison.rows ? all : `${count(kept)} of ${all}`;
    by("clear").hidden = !filters.any();
    const within = [filters.node?.title, filters.place?.title].filter(Boolean);
    by("within").hidden = within.length === 0;
    by("within").textContent = shown(within.map((title) => `in ${tail(title, 40)}`).join(", ") + " \u00d7");
    this.keepAddress();
  }

  open(id, from = document.activeElement) {
    if (this.panel.id === null) this.cameFrom = from;
    const { rank, row } = this.comparison.at(id);
    if (this.filters.admit(rank, row)) this.apply();
    document.body.classList.add("with-entry");
    this.panel.show(id);
    this.table.reveal(id);
    this.curve.choose(rank, row);
    if (this.view === "graph") this.showInGraph(id);
    this.title().focus({ preventScroll: true });
    this.keepAddress();
  }

  close() {
    this.panel.hide();
    document.body.classList.remove("with-entry");
    this.curve.choose(null);
    this.cameFrom?.focus({ preventScroll: true });
    this.keepAddress();
  }

  // Chips by the words on them, so that an address outlives another order.
  namesOf(kind) {
    const { steps, rankNames } = this.comparison;
    const names = { origin: GRADES.map(({ name }) => name), verdict: VERDICTS, direction: DIRECTIONS, step: steps, rank: rankNames };
    return names[kind];
  }

  keepAddress() {
    if (!this.settled) return;
    const { filters, table, panel, comparison } = this;
    const opened = panel.id === null ? null : comparison.at(panel.id);
    let root = filters.node;
    while (root?.parent) root = root.parent;
    const ranks = filters.place?.ranks;
    writeAddress({
      row: opened ? [opened.rank.label, opened.rank.name(opened.row)] : [],
      sort: table.sort.column === null ? [] : [table.sort.column, table.sort.down ? "down" : "up"],
      words: filters.words.join(" "),
      only: Object.entries(filters.on).flatMap(([kind, on]) => [...on].map((one) => `${kind}=${this.namesOf(kind)[one]}`)),
      within: filters.node === null ? [] : [root.label, filters.node.title],
      layer: filters.place === null ? [] : [filters.place.layer.path, ...(ranks ? [ranks.first, ranks.last] : []).map((index) => comparison.ranks[index].label)],
      view: this.view === "curve" ? "" : this.view,
      step: this.curve.stepShown() === this.curve.firstStep ? "" : this.curve.stepShown(),
      box: this.view === "graph" && this.graph !== null ? this.graph.address() : [],
    });
  }

  goToAddress() {
    this.settled = false;
    const { filters, comparison } = this;
    const wanted = readAddress();
    filters.clear();
    filters.words = wanted.words.toLowerCase().split(/\s+/).filter(Boolean);
    by("search").value = filters.words.join(" ");
    for (const one of wanted.only) {
      const kind = one.slice(0, one.indexOf("="));
      const value = Object.hasOwn(filters.on, kind) ? this.namesOf(kind).indexOf(one.slice(kind.length + 1)) : -1;
      if (value >= 0) filters.on[kind].add(value);
    }
    if (wanted.within.length === 2) filters.node = this.tree.named(...wanted.within);
    if (wanted.layer.length > 0 && this.map) filters.place = this.map.named(...wanted.layer);
    this.tree.select(filters.node);
    this.map?.select(filters.place);
    this.table.sortAs(...wanted.sort);
    this.show(wanted.view);
    this.curve.showStep(wanted.step);
    this.apply();
    if (this.view === "graph" && wanted.box.length === 3) this.graph.chooseNamed(...wanted.box);
    const id = wanted.row.length === 2 ? comparison.rowNamed(...wanted.row) : null;
    if (id !== null) {
      this.open(id);
    } else {
      if (this.panel.id !== null) this.close();
      const first = this.first();
      if (first) this.table.reveal(comparison.id(first.rank, first.row));
    }
    this.settled = true;
  }

  showTheme(dark) {
    setTheme(dark);
    this.curve.draw();
    this.map?.draw();
    this.paintRanks();
  }
}

async function load() {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser cannot unpack the report: it lacks DecompressionStream. Chrome 103, Firefox 113, Safari 16.4 and later have it.");
  }
  const overview = await unpackJson("overview");
  const total = overview.ranks.reduce((sum, rank) => sum + rank.rows, 0);
  const ranks = [];
  let done = 0;
  for (const [index, about] of overview.ranks.entries()) {
    ranks.push(await Rank.load(index, about, async (rows) => {
      done += rows;
      by("loading").textContent = `Unpacking ${count(done)} of ${plural(total, "row")} \u2026`;
      await new Promise((resolve) => setTimeout(resolve));
    }));
  }
  const comparison = new Comparison(overview, ranks);
  document.body.classList.remove("is-loading");
  by("loading").hidden = true;
  return new Report(comparison);
}

begin(load);
