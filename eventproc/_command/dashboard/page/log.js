// What happened, the newest first.

import { badge, by, element } from "./dom.js";
import { clock } from "./format.js";

const TONES = { good: "good", warning: "warning", bad: "bad", plain: "" };
const SHOWN_MAX = 300;

export class Log {
  constructor(model) {
    this.model = model;
    this.list = by("log");
    by("log-filter").addEventListener("input", () => this.fill());
  }

  update(entries, isWhole) {
    if (isWhole || by("log-filter").value) return this.fill();
    // Only what is new is added, so that a screen reader reads it once.
    for (const entry of entries) this.list.prepend(this.line(entry));
    while (this.list.children.length > SHOWN_MAX) this.list.lastChild.remove();
    this.mark();
  }

  fill() {
    const sought = by("log-filter").value.trim().toLowerCase();
    const found = this.model.log.filter((entry) => !sought || `${entry.kind} ${entry.text}`.toLowerCase().includes(sought));
    this.list.replaceChildren(...found.slice(-SHOWN_MAX).reverse().map((entry) => this.line(entry)));
    this.mark();
  }

  mark() {
    by("log-empty").hidden = this.list.children.length > 0;
    this.list.hidden = !this.list.children.length;
  }

  line(entry) {
    const time = element("time", { textContent: clock(entry.at), dateTime: new Date(entry.at * 1000).toISOString() });
    return element("li", { dataset: { kind: entry.kind } }, time, badge(entry.kind, TONES[entry.tone]), element("span", { textContent: entry.text }));
  }
}
