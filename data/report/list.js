// SPDX-License-Identifier: Apache-2.0
// A long list of which only the visible lines are elements; the table and the tree are made of it.
"use strict";

const LINES_AROUND = 6; // beyond the edges, so that scrolling shows no gaps

class LongList {
  // `line(index, active)` makes the element of a line; `open(index)` is Enter or a click.
  constructor(box, { lineHeight, line, open, move, moved }) {
    this.box = box;
    this.lineHeight = lineHeight;
    this.line = line;
    this.open = open;
    this.move = move ?? (() => {});
    this.moved = moved ?? (() => {});
    this.length = 0;
    this.active = -1;
    this.body = element("div", { class: "lines", role: "presentation" });
    box.append(this.body);
    box.addEventListener("scroll", () => this.draw());
    box.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => {
      const index = event.target.closest("[data-line]")?.dataset.line;
      if (index !== undefined) this.choose(Number(index), event);
    });
    new ResizeObserver(() => this.draw()).observe(box);
  }

  show(length, active = -1) {
    this.length = length;
    this.active = active;
    this.body.style.height = `${length * this.lineHeight}px`;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.lineHeight) - LINES_AROUND);
    const visible = Math.ceil(this.box.clientHeight / this.lineHeight) + 2 * LINES_AROUND;
    const last = Math.min(this.length, first + visible);
    const lines = [];
    for (let i = first; i < last; ++i) {
      const made = this.line(i, i === this.active);
      made.dataset.line = i;
      made.id = `${this.box.id}-${i}`;
      made.style.top = `${i * this.lineHeight}px`;
      made.classList.toggle("active", i === this.active);
      lines.push(made);
    }
    this.body.replaceChildren(...lines);
    if (this.active >= first && this.active < last) {
      this.box.setAttribute("aria-activedescendant", `${this.box.id}-${this.active}`);
    } else {
      this.box.removeAttribute("aria-activedescendant");
    }
  }

  choose(index, event) {
    this.active = index;
    this.draw();
    this.open(index, event);
  }

  reveal(index) {
    if (index < 0 || index >= this.length) return;
    this.active = index;
    this.moved(index);
    const head = this.box.querySelector(".head")?.offsetHeight ?? 0;
    const top = index * this.lineHeight;
    const room = this.box.clientHeight - head - this.lineHeight;
    const hidden = Math.max(this.box.scrollTop - top, top - this.box.scrollTop - room);
    if (hidden > 2 * this.lineHeight) this.box.scrollTop = top - room / 2; // with its neighbours
    else if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (hidden > 0) this.box.scrollTop = top - room;
    this.draw();
  }

  key(event) {
    // A button within handles the key itself.
    if (event.target === this.box) this.take(event);
  }

  take(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.lineHeight) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.length, End: this.length };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && this.active >= 0) {
      this.open(this.active, event);
    } else if (event.key in steps && this.length > 0) {
      const next = this.active < 0 ? 0 : this.active + steps[event.key];
      this.reveal(Math.min(this.length - 1, Math.max(0, next)));
    } else if (!this.move(event, this.active)) {
      return;
    }
    event.preventDefault();
  }
}
