// SPDX-License-Identifier: Apache-2.0
// Puts the page together: unpacks the data, and keeps filters, curve, tree, table and panel in step.
"use strict";

const SEARCH_DELAY_MS = 150;
const DARK = matchMedia("(prefers-color-scheme: dark)");
const setTheme = (dark) => (document.documentElement.dataset.theme = dark ? "dark" : "light");
const by = (id) => document.getElementById(id);

class Filters {
  constructor(comparison, changed) {
    this.comparison = comparison;
    this.changed = changed;
    this.words = [];
    this.node = null;
    this.off = { verdict: new Set(), direction: new Set(), rank: new Set() };
    this.lower = comparison.ranks.map(() => null);
  }

  active() {
    return this.words.length > 0 || this.node !== null || this.off.verdict.size > 0 || this.off.direction.size > 0;
  }

  clear() {
    this.words = [];
    this.node = null;
    for (const set of Object.values(this.off)) set.clear();
  }

  // Which rows of a rank pass; null if none can.
  mask(rank, tree) {
    if (this.off.rank.has(rank.index) || rank.rows === 0) return null;
    const entries = new Uint8Array(rank.entries.length);
    for (let entry = 0; entry < entries.length; ++entry) {
      const inNode = this.node === null || tree.byEntry[rank.index][entry]?.isIn(this.node);
      entries[entry] = inNode && !this.off.direction.has(rank.directions[entry]) ? 1 : 0;
    }
    const words = this.words.map((word) => this.wordTest(rank, word));
    const mask = new Uint8Array(rank.rows);
    for (let row = 0; row < rank.rows; ++row) {
      if (this.off.verdict.has(rank.verdicts[row])) continue;
      const entry = rank.entryOf(row);
      if (entry === NO_ENTRY ? this.node !== null : entries[entry] === 0) continue;
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
    const open = (id) => this.open(id);
    this.panel = new EntryPanel(by("entry"), { comparison, open, close: () => this.close() });
    this.tree = new ModelTree(by("tree"), { comparison, choose: (node) => this.chooseNode(node) });
    this.table = new RowTable(by("table"), { comparison, open });
    this.curve = new Curve(by("curve"), { comparison, open });
    this.showVerdict();
    this.showChips();
    this.listen();
    this.apply();
    const first = comparison.firstBad();
    if (first) this.table.reveal(comparison.id(first.rank, first.row));
  }

  showVerdict() {
    const { comparison } = this;
    const sum = (key) => comparison.ranks.reduce((total, rank) => total + rank.about[key], 0);
    const [errors, warnings] = [sum("errors"), sum("warnings")];
    const failed = comparison.ranks.filter((rank) => rank.about.failure);
    const worst = errors > 0 || failed.length > 0 ? "error" : warnings > 0 ? "warning" : "pass";
    const ranks = comparison.ranks.length > 1 ? ` on ${plural(comparison.ranks.length, "rank")}` : "";
    const left = sum("leftOut");
    const rows = `${plural(comparison.rows - left, "row")}${ranks}${left > 0 ? `, and ${count(left)} left out` : ""}`;
    const told = worst === "pass" ? `No difference beyond the rules in ${rows}`
      : `${plural(errors, "error")} and ${plural(warnings, "warning")} in ${rows}`;
    const { diagnosis } = comparison.overview;
    if (diagnosis) this.showCulprit(diagnosis, told);
    else by("verdict").replaceChildren(element("b", { class: `badge big ${worst}`, text: worst }), element("span", { text: told }));
    const first = comparison.firstBad();
    if (first) {
      const name = first.rank.name(first.row);
      by("first").replaceChildren(
        element("span", { class: "muted", text: `First ${VERDICTS[first.verdict]} in execution order: ` }),
        element("button", { class: "link name", text: name, onclick: () => this.open(comparison.id(first.rank, first.row)) }),
        element("span", { class: "muted", text: `${first.rank.label ? ` on ${first.rank.label}` : ""} \u2014 ${first.reason}${first.measure ? ` (${first.measure})` : ""}` }));
    }
    this.showSources(failed);
  }

  // Where it first goes wrong is the headline; what the rules say of rows follows.
  showCulprit({ answer, findings, origins }, told) {
    const [culprit] = findings;
    const found = culprit && culprit.kind !== "no_culprit" && culprit.confidence !== "hint";
    const row = found ? this.rowOf(culprit) : null;
    by("verdict").replaceChildren(
      element("b", { class: `badge big ${found ? "error" : "pass"}`, text: found ? "culprit" : "no culprit" }),
      found && row !== null ? element("button", { class: "link name", text: culprit.entry, onclick: () => this.open(row) })
        : element("span", { class: "name", text: found ? culprit.entry : "" }));
    by("answer").textContent = answer.trimEnd();
    by("answer").hidden = false;
    const counts = Object.entries(origins).map(([origin, number]) => `${count(number)} ${origin}`).join(", ");
    by("origins").textContent = `${counts}. By the rules: ${told}.`;
    by("origins").hidden = false;
  }

  // The first row of a finding's entry, as open() takes it; null if it has none.
  rowOf({ entry, step, rank }) {
    const label = step ? `${step}/${rank}` : rank;
    const place = this.comparison.ranks.find((one) => one.label === label) ?? this.comparison.ranks[0];
    const group = place?.groups.find((one) => place.entries[place.entryOf(one.first)] === entry);
    return group ? this.comparison.id(place, group.first) : null;
  }

  showSources(failed) {
    const { overview, ranks } = this.comparison;
    const [one] = ranks;
    const counts = (key, text) => {
      const total = ranks.reduce((sum, rank) => sum + rank.about[key], 0);
      return total > 0 ? [element("li", { text: `${count(total)} ${text}` })] : [];
    };
    by("notes").replaceChildren(
      ...(one ? [element("li", {}, "target ", element("span", { class: "name", text: one.about.target }), " against golden ",
        element("span", { class: "name", text: one.about.golden }), ` (${this.comparison.modes.join(", ")})`)] : []),
      ...counts("unmatched", "rows of the target without a partner"),
      ...counts("goldenOnly", "only in the golden side"),
      ...counts("unreadable", "not comparable"),
      ...counts("leftOut", "left out, behind the first certain evidence"),
      ...ranks.filter((rank) => rank.about.wholeLeftOut).map((rank) =>
        element("li", { text: `${rank.label}: left out, an earlier step has certain evidence` })),
      ...failed.map((rank) => element("li", { class: "error", text: `${rank.label}: ${rank.about.failure}` })),
      ...overview.onlyOneSide.map((text) => element("li", { text: `not compared: ${text}` })));
    by("made-by").textContent = `msprobe ${overview.version}`;
  }

  showChips() {
    const { ranks } = this.comparison;
    const totals = [0, 0, 0];
    for (const rank of ranks) for (const verdict of rank.verdicts) totals[verdict] += 1;
    const chips = (kind, items) => by(`${kind}-chips`).replaceChildren(...items.map(([value, text, mark]) =>
      element("button", {
        class: `chip ${mark ?? ""}`,
        "aria-pressed": "true",
        "data-kind": kind,
        "data-value": value,
        title: `Show or hide: ${text} (with Alt: only this)`,
        onclick: (event) => this.toggle(kind, value, items.map(([one]) => one), event.altKey),
      }, element("span", { class: "swatch" }), element("span", { text }))));
    chips("verdict", [2, 1, 0].map((verdict) => [verdict, `${VERDICTS[verdict]} ${count(totals[verdict])}`, VERDICTS[verdict]]));
    const directions = new Set(ranks.flatMap((rank) => rank.groups.map((group) => rank.direction(group.first))));
    chips("direction", directions.size > 1 ? [...directions].sort().map((one) => [one, DIRECTIONS[one]]) : []);
    chips("rank", ranks.length > 1 ? ranks.map((rank) => [rank.index, rank.label, "rank"]) : []);
    this.paintRanks();
  }

  paintRanks() {
    for (const chip of document.querySelectorAll(".chip.rank")) {
      chip.firstChild.style.background = this.curve.rankColor(Number(chip.dataset.value));
    }
  }

  toggle(kind, value, all, only) {
    const off = this.filters.off[kind];
    if (only) {
      const alone = all.every((one) => off.has(one) === (one !== value));
      off.clear();
      if (!alone) all.filter((one) => one !== value).forEach((one) => off.add(one));
    } else if (!off.delete(value)) {
      off.add(value);
    }
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
    document.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const typing = event.target === by("search");
    if (event.key === "/" && !typing) {
      by("search").focus();
      by("search").select();
      event.preventDefault();
    } else if (event.key === "Escape") {
      if (this.panel.id !== null) this.close();
      else this.clear();
    }
  }

  search() {
    this.filters.words = by("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    this.apply();
  }

  clear() {
    this.filters.clear();
    by("search").value = "";
    this.tree.select(null);
    this.apply();
  }

  chooseNode(node) {
    this.filters.node = node;
    this.tree.select(node);
    this.apply();
    if (node?.place) this.open(this.comparison.id(node.place.rank, node.place.row), by("tree"));
  }

  apply() {
    const { filters, comparison } = this;
    const masks = comparison.ranks.map((rank) => filters.mask(rank, this.tree));
    this.table.filter((rank) => masks[rank.index]);
    const ranksShown = new Set(comparison.ranks.map((rank) => rank.index).filter((index) => !filters.off.rank.has(index)));
    this.curve.filter(filters.active() ? masks : null, ranksShown);
    for (const chip of document.querySelectorAll(".chip[data-kind]")) {
      chip.setAttribute("aria-pressed", String(!filters.off[chip.dataset.kind].has(Number(chip.dataset.value))));
    }
    const kept = this.table.order.length;
    by("kept").textContent = kept === comparison.rows ? plural(kept, "row") : `${count(kept)} of ${plural(comparison.rows, "row")}`;
    by("clear").hidden = !filters.active() && filters.off.rank.size === 0;
    by("within").hidden = filters.node === null;
    by("within").textContent = filters.node === null ? "" : shown(`in ${tail(filters.node.title, 40)}`);
  }

  open(id, from = document.activeElement) {
    if (this.panel.id === null) this.cameFrom = from;
    const { rank, row } = this.comparison.at(id);
    document.body.classList.add("with-entry");
    this.panel.show(id);
    this.table.reveal(id);
    this.curve.choose(rank, row);
    by("entry").querySelector("h2").focus({ preventScroll: true });
  }

  close() {
    this.panel.hide();
    document.body.classList.remove("with-entry");
    this.curve.choose(null);
    this.cameFrom?.focus({ preventScroll: true });
  }

  showTheme(dark) {
    setTheme(dark);
    this.curve.draw();
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

setTheme(DARK.matches);
load().then(
  (report) => {
    window.report = report; // for the console, and for tests
    document.body.dataset.ready = String(Math.round(performance.now()));
  },
  (error) => {
    by("loading").hidden = false;
    by("loading").textContent = error.message;
    by("loading").classList.add("failed");
  },
);
