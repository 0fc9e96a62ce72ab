// SPDX-License-Identifier: Apache-2.0
// The events in order: where series part or blow up, and the alerts of the monitor.
"use strict";

const EVENT_LINE = 40;
const KINDS = {
  parted: { word: "parts", rank: 0 },
  number: { word: "NaN or inf", rank: 1 },
  growth: { word: "blows up", rank: 2 },
  alert: { word: "alert", rank: 3 },
  passing: { word: "differs for some steps", rank: 4 },
};
// As a step goes; see `man msprobe-monitor-compare`.
const PHASES = ["param_origin", "exp_avg", "exp_avg_sq", "actv", "actv_grad", "grad_unreduced", "comm", "grad_reduced", "mg_direction", "update", "ratio", "param_updated"];

function phaseOf(quantity) {
  const phase = PHASES.indexOf(quantity);
  return phase < 0 ? PHASES.indexOf("actv") : phase;
}

// One event a row and kind, the statistic that shows it first, in the order in which training came to them.
function gatherEvents(overview) {
  const events = [];
  overview.blocks.forEach((block, index) => {
    const known = new Map();
    for (const [row, statistic, step, kind, run] of block.marks) {
      const key = `${row} ${kind} ${run}`;
      const before = known.get(key);
      if (before !== undefined && before.step <= step) continue;
      known.set(key, { block: index, row, statistic, step, kind, run, text: "" });
    }
    events.push(...known.values());
  });
  overview.alerts.forEach((alerts, run) => events.push(...placedAlerts(overview, alerts, run)));
  const order = (one) => [one.step, phaseOf(overview.blocks[one.block].quantity), one.row, KINDS[one.kind].rank];
  return events.map((one) => ({ ...one, order: order(one) })).sort((a, b) => {
    const at = a.order.findIndex((value, i) => value !== b.order[i]);
    return at < 0 ? 0 : a.order[at] - b.order[at];
  });
}

// Alerts of the rows on the page; a tag is stage:name[:micro step]. Alerts of one row in steps without a gap are one.
function placedAlerts(overview, alerts, run) {
  const rows = new Map();
  overview.blocks.forEach((block, index) => block.names.forEach((name, row) => {
    const stage = Math.max(0, block.stages[row]);
    const micro = block.microSteps[row];
    rows.set(`${block.rank} ${block.quantity} ${stage}:${name}${micro >= 0 ? `:${micro}` : ""}`, [index, row]);
  }));
  const placed = [];
  const open = new Map();
  for (const [rank, step, quantity, tag, text] of alerts) {
    const found = rows.get(`${rank} ${quantity} ${tag}`) ?? rows.get(`${rank} ${quantity} ${tag}:0`);
    if (found === undefined) continue;
    const [block, row] = found;
    const statistic = /'(\w+)'\)/.exec(text)?.[1] ?? "";
    const key = `${block} ${row} ${statistic}`;
    const before = open.get(key);
    if (before !== undefined && step - before.steps.at(-1) <= overview.blocks[block].width) {
      before.steps.push(step);
      continue;
    }
    const event = { block, row, statistic, step, steps: [step], kind: "alert", run, text };
    open.set(key, event);
    placed.push(event);
  }
  return placed;
}

class Events {
  constructor(box, { overview, open }) {
    this.overview = overview;
    this.all = gatherEvents(overview);
    const counts = Object.entries(KINDS).map(([kind, { word }]) => [this.all.filter((one) => one.kind === kind).length, word]).filter(([number]) => number > 0);
    by("events-told").textContent = counts.length === 0 ? "Nothing stands out." : counts.map(([number, word]) => `${word}: ${count(number)}`).join(", ");
    this.list = new LongList(box, {
      lineHeight: EVENT_LINE,
      line: (index) => this.line(this.all[index]),
      open: (index) => open(this.all[index]),
    });
    this.list.show(this.all.length);
    box.hidden = this.all.length === 0;
  }

  // The place in the list of the event that the headline names, else of the first event.
  first() {
    const told = [["parted"], ["number", "growth"]].map((kinds) => this.all.findIndex(({ kind }) => kinds.includes(kind)));
    return told.find((found) => found >= 0) ?? (this.all.length > 0 ? 0 : -1);
  }

  line(event) {
    const block = this.overview.blocks[event.block];
    const run = this.overview.runs.length > 1 && event.kind !== "parted" && event.kind !== "passing" ? `, run ${event.run + 1}` : "";
    const ranks = new Set(this.overview.blocks.map((one) => one.rank)).size > 1 ? `, rank ${block.rank}` : "";
    const last = event.steps?.at(-1) ?? event.step;
    const until = last > event.step ? ` to ${count(last)}` : "";
    return element("div", { class: `event ${event.kind}`, role: "option", title: event.text || undefined },
      element("span", { class: "sign", "aria-hidden": "true" }),
      element("span", { class: "what" },
        element("b", { text: `step ${count(event.step)}${until} ` }),
        element("span", { text: `${KINDS[event.kind].word}: ${block.quantity}, ${event.statistic}${ranks}${run}` })),
      element("span", { class: "name", text: tail(block.names[event.row], 44), title: block.names[event.row] }));
  }

  // The next one from a place on: of the list, or by the step that is chosen.
  go(by) {
    if (this.all.length === 0) return;
    const next = this.list.active < 0 ? 0 : this.list.active + by;
    this.list.reveal(Math.min(this.all.length - 1, Math.max(0, next)));
    this.list.open(this.list.active);
  }
}
