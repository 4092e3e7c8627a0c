// The partitions, as a table: sorted, filtered, in pages.

import { colour } from "./colours.js";
import { badge, by, element, nameOf, setText, setTone } from "./dom.js";
import { number, rate, span } from "./format.js";

const PAGE = 100;
const HEADS = [
  ["name", "Partition", "", true],
  ["state", "State", "", true],
  ["owner", "Owner", "", true],
  ["lag", "Waiting", "num", false],
  ["drain", "Handled /s", "num", false],
  ["arrival", "Arriving /s", "num", false],
  ["position", "Position", "num", false],
  ["written", "Checkpoint", "num", false],
  ["renewed", "Lease", "num", false],
];

export class Partitions {
  constructor(model, actions) {
    this.model = model;
    this.actions = actions; // null: the page only reads
    this.sort = "name";
    this.isAscending = true;
    this.page = 0;
    this.selected = new Set();
    this.rows = new Map();
    this.table = by("partitions");
    this.makeHead();
    for (const id of ["partition-filter", "only-attention"]) {
      by(id).addEventListener("input", () => {
        this.page = 0;
        this.update();
      });
    }
  }

  makeHead() {
    const row = element("tr");
    if (this.actions) {
      this.all = element("input", { type: "checkbox", "aria-label": "Select all that are listed" });
      this.all.addEventListener("change", () => {
        for (const i of this.listed) this.select(this.model.group.partitions.id[i], this.all.checked);
        this.update();
      });
      row.append(element("th", { scope: "col" }, this.all));
    }
    this.heads = HEADS.map(([key, title, kind, ascending]) => {
      const button = element("button", { type: "button", textContent: key === "name" ? this.noun() : title });
      button.addEventListener("click", () => {
        this.isAscending = this.sort === key ? !this.isAscending : ascending;
        this.sort = key;
        this.page = 0;
        this.update();
      });
      const head = element("th", { scope: "col", className: kind }, button);
      row.append(head);
      return [key, head];
    });
    this.table.tHead.replaceChildren(row);
  }

  noun() {
    const { noun } = this.model.about;
    return noun[0].toUpperCase() + noun.slice(1);
  }

  select(id, isSelected) {
    if (isSelected) this.selected.add(id);
    else this.selected.delete(id);
  }

  state(i) {
    const { id, owner, expired, lag } = this.model.group.partitions;
    const finding = this.model.stuck.get(id[i]);
    if (finding) return [0, finding.kind, "bad", finding.text];
    if (expired[i]) return [1, "owner silent", "warning", "Its owner does not renew; another member may claim it."];
    if (owner[i] < 0) return [1, "no owner", "warning", "It waits to be claimed."];
    const other = this.model.group.findings.find((f) => !f.is_stuck && f.partitions.includes(i) && f.kind !== "late member");
    if (other) return [2, other.kind, "warning", other.text];
    if (lag[i] === 0) return [4, "up to date", "good", ""];
    return [3, lag[i] == null ? "owned" : "in progress", "good", ""];
  }

  update() {
    const { partitions, owners } = this.model.group;
    this.states = partitions.id.map((_, i) => this.state(i));
    const sought = by("partition-filter").value.trim().toLowerCase();
    const only = by("only-attention").checked;
    this.listed = partitions.id
      .map((_, i) => i)
      .filter((i) => {
        if (only && this.states[i][0] > 2) return false;
        const owner = partitions.owner[i] < 0 ? "" : owners[partitions.owner[i]][0];
        return !sought || partitions.name[i].toLowerCase() === sought || owner.toLowerCase().includes(sought);
      });
    this.order();
    const pages = Math.max(1, Math.ceil(this.listed.length / PAGE));
    this.page = Math.min(this.page, pages - 1);
    this.fill(this.listed.slice(this.page * PAGE, (this.page + 1) * PAGE));
    this.pager(pages);
    for (const [key, head] of this.heads) {
      if (key === this.sort) head.setAttribute("aria-sort", this.isAscending ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    this.selection();
  }

  order() {
    if (this.sort === "name" && this.isAscending) return; // They come in this order.
    const { partitions } = this.model.group;
    const key = this.sort === "state" ? (i) => this.states[i][0]
      : this.sort === "name" ? (i) => i
      : (i) => partitions[this.sort][i] ?? -1;
    const sign = this.isAscending ? 1 : -1;
    this.listed.sort((a, b) => sign * (key(a) - key(b)) || a - b);
  }

  fill(shown) {
    const { partitions } = this.model.group;
    const ids = shown.map((i) => partitions.id[i]);
    const wanted = ids.join("\n");
    if (this.shown !== wanted) {
      this.shown = wanted;
      const kept = this.rows;
      this.rows = new Map(ids.map((id, n) => [id, kept.get(id) ?? this.row(id, partitions.name[shown[n]])]));
      const focused = document.activeElement;
      this.table.tBodies[0].replaceChildren(...ids.map((id) => this.rows.get(id).row));
      if (focused?.isConnected && this.table.contains(focused)) focused.focus();
      if (!ids.length) {
        this.table.tBodies[0].append(element("tr", {},
          element("td", { className: "nothing", colSpan: 10, textContent: "Nothing to show." })));
      }
    }
    const most = Math.max(1, ...partitions.lag.map((lag) => lag ?? 0));
    for (const i of shown) this.fillRow(this.rows.get(partitions.id[i]), i, most);
  }

  row(id, name) {
    const cells = {
      state: element("td"),
      dot: element("span", { className: "dot" }),
      owner: nameOf(""),
      lag: element("span"),
      bar: element("i"),
      drain: element("td", { className: "num" }),
      arrival: element("td", { className: "num" }),
      position: element("td", { className: "num" }),
      written: element("td", { className: "num" }),
      renewed: element("td", { className: "num" }),
    };
    cells.barBox = element("div", { className: "bar" }, cells.lag, cells.bar);
    cells.row = element("tr", {},
      ...(this.actions ? [element("td", {}, (cells.box = this.box(id, name)))] : []),
      element("th", { scope: "row", textContent: name }),
      cells.state,
      element("td", {}, element("span", { className: "owner" }, cells.dot, cells.owner)),
      element("td", {}, cells.barBox),
      cells.drain, cells.arrival, cells.position, cells.written, cells.renewed);
    return cells;
  }

  box(id, name) {
    const box = element("input", { type: "checkbox", "aria-label": `Select ${this.model.about.noun} ${name}` });
    box.addEventListener("change", () => {
      this.select(id, box.checked);
      this.selection();
    });
    return box;
  }

  fillRow(cells, i, most) {
    const { partitions, owners } = this.model.group;
    const [, text, tone, why] = this.states[i];
    if (cells.shownState !== text + why) {
      cells.shownState = text + why;
      const shown = badge(text, tone);
      if (why) shown.title = why;
      cells.state.replaceChildren(shown);
      setTone(cells.row, tone === "bad" ? "bad" : "");
    }
    const owner = partitions.owner[i] < 0 ? null : owners[partitions.owner[i]];
    const shade = owner === null ? "transparent" : colour(owner[1]);
    if (cells.shade !== shade) cells.dot.style.background = cells.shade = shade;
    setText(cells.owner, owner === null ? "none" : owner[0]);
    cells.owner.title = cells.owner.textContent;
    const lag = partitions.lag[i];
    setText(cells.lag, number(lag));
    const width = `${Math.round(((lag ?? 0) / most) * 60)}px`;
    if (cells.width !== width) cells.bar.style.width = cells.width = width;
    setTone(cells.barBox, tone === "bad" ? "bad" : "");
    setText(cells.drain, rate(partitions.drain[i]));
    setText(cells.arrival, rate(partitions.arrival[i]));
    setText(cells.position, partitions.position[i] == null ? "none" : number(partitions.position[i]));
    const drift = this.model.drift();
    const ago = (age) => (age == null ? "" : `${span(age + drift)} ago`);
    setText(cells.written, ago(partitions.written[i]));
    setText(cells.renewed, ago(partitions.renewed[i]));
    if (cells.box) cells.box.checked = this.selected.has(partitions.id[i]);
  }

  pager(pages) {
    const box = by("pager");
    box.hidden = pages < 2;
    const text = `${this.page + 1} of ${pages}`;
    if (box.hidden || box.dataset.shown === text) return;
    box.dataset.shown = text;
    const go = (title, step) => {
      const button = element("button", { type: "button", textContent: title, disabled: this.page + step < 0 || this.page + step >= pages });
      button.addEventListener("click", () => {
        this.page += step;
        this.update();
      });
      return button;
    };
    box.replaceChildren(go("Previous", -1), element("span", { textContent: `page ${text}` }), go("Next", 1));
  }

  selection() {
    if (!this.actions) return;
    const box = by("selection");
    const count = this.selected.size;
    box.hidden = !count;
    if (box.dataset.shown === String(count)) return;
    box.dataset.shown = String(count);
    box.replaceChildren(...this.actions.map(([title, start]) => {
      const button = element("button", { type: "button", className: "primary", textContent: `${title} (${count})…` });
      button.addEventListener("click", () => start([...this.selected]));
      return button;
    }));
  }
}
