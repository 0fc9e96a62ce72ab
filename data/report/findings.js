// SPDX-License-Identifier: Apache-2.0
// Shows the findings: the culprit and a second fault beside the headline, and the finding of an entry in
// its panel.
"use strict";

function isEvidence(finding) {
  return finding !== undefined && ["likely", "certain"].includes(finding.confidence);
}

// The words of a finding, by name; a file and line as elements.
function linesOf(finding, sources) {
  const { text, entry, golden_entry: golden, golden_where: line, side, where, next } = finding;
  return [
    ["why", text],
    ["golden", line ? [element("span", { text: `${golden} \u00b7 ` }), ...sources.place(line)] : golden === entry ? "" : golden],
    ["side", side],
    ["where", where && sources.place(where)],
    ["next", next],
  ].filter(([, words]) => words);
}

function wordList(lines) {
  const told = (words) => (Array.isArray(words) ? element("dd", {}, ...words) : element("dd", { text: words }));
  return element("dl", { class: "words" }, ...lines.flatMap(([name, words]) => [element("dt", { text: name }), told(words)]));
}

function placeWords({ module, step, rank, other_ranks: others, confidence }) {
  const ranks = [rank, ...(others ?? [])].filter(Boolean);
  const listed = ranks.length > 4 ? `${ranks.slice(0, 4).join(", ")} and ${ranks.length - 4} more` : ranks.join(", ");
  return [module && `in ${module}`, step, listed, confidence].filter(Boolean).join(" \u00b7 ");
}

class Findings {
  constructor({ comparison, open, sources }) {
    Object.assign(this, { comparison, open, sources });
    const { diagnosis } = comparison.overview;
    this.all = diagnosis.findings;
    this.independent = diagnosis.independent;
    this.blame();
    this.sections = [];
    for (const [heads, name, words] of diagnosis.answer) {
      if (heads) this.sections.push({ name, words, lines: [] });
      else this.sections.at(-1).lines.push([name, words]);
    }
  }

  // Null where the runs differ by rounding alone.
  culprit() {
    return isEvidence(this.all[0]) ? this.all[0] : null;
  }

  // Entries that are to blame may have nothing to compare: they are marked whatever their rows say.
  blame() {
    for (const finding of this.all.slice(0, this.independent)) {
      for (const rank of this.comparison.ranks) {
        const concerned = rank.about.step === finding.step && [finding.rank, ...finding.other_ranks].includes(rank.about.rank);
        const group = concerned && rank.groupNamed(finding.entry, finding.kind === "removed");
        if (group) group.blamed = true;
      }
    }
  }

  // Where a finding's entry is to be looked at, as open() takes it: where its error is introduced, or its first row;
  // null if it has none.
  rowOf({ entry, step, rank, kind }) {
    const { ranks } = this.comparison;
    const place = ranks.find((one) => one.about.step === step && one.about.rank === rank) ?? ranks[0];
    const group = place?.groupNamed(entry, kind === "removed");
    if (!group) return null;
    let row = group.first;
    while (row < group.last && place.grades[row] !== GRADE.introduced) ++row;
    return this.comparison.id(place, row < group.last ? row : group.first);
  }

  // The finding of an entry of a rank, if the page has it.
  ofGroup(rank, group) {
    const { step } = rank.about;
    const name = rank.entryName(group);
    const alone = rank.isOnlyGolden(rank.groups[group].first);
    return this.all.find((finding) => finding.entry === name && finding.step === step && (finding.kind === "removed") === alone &&
      (finding.rank === rank.about.rank || finding.other_ranks?.includes(rank.about.rank)));
  }

  show(headline, place, box) {
    const culprit = this.culprit();
    headline.replaceChildren(
      element("b", { class: `badge big ${culprit ? "introduced" : "rounding"}`, text: this.sections[0].name }),
      ...(culprit ? [this.name(culprit)] : []));
    place.replaceChildren(...(culprit ? [`${placeWords(culprit)} `, copyButton(culprit.entry)] : []));
    box.replaceChildren(...this.sections.map((section) => this.section(section)));
  }

  name(finding) {
    const row = this.rowOf(finding);
    const text = finding.kind === "removed" ? `${finding.entry} (golden)` : finding.entry;
    return row === null ? element("span", { class: "name", text })
      : element("button", { class: "link name", text, onclick: () => this.open(row) });
  }

  section({ name, words, lines }) {
    if (name.startsWith("no culprit") || name.startsWith("not clear"))
      return element("p", { text: `${name}: ${[words, ...lines.map(([, more]) => more)].join("; ")}` });
    if (name === "note") return element("p", { class: "muted", text: `note: ${words}` });
    const finding = this.all[name === "culprit" ? 0 : 1];
    const told = linesOf(finding, this.sources);
    const known = new Set(told.map(([label]) => label));
    const more = lines.filter(([label]) => !known.has(label));
    if (name === "culprit") return wordList([...told, ...more]);
    return element("details", { class: "finding" },
      element("summary", {},
        element("b", { class: `badge ${isEvidence(finding) ? "introduced" : "rounding"}`, text: name }), " ",
        this.name(finding), element("span", { class: "muted", text: ` ${placeWords(finding)} ` }), copyButton(finding.entry)),
      wordList([...told, ...more]));
  }
}
