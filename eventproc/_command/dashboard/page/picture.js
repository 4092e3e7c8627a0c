// The picture: a row for each partition, its owner's colour over time.

import { colour, themed } from "./colours.js";
import { by, element, nameOf } from "./dom.js";
import { clock, plural, span } from "./format.js";

const WINDOWS = [
  ["Fit", 0],
  ["5 min", 300],
  ["15 min", 900],
  ["1 h", 3600],
  ["2 h", 7200],
];
const FIT_MIN_S = 20;
const FIT_MAX_S = 900;
const TOP = 34; // room for what happened
const BOTTOM = 22; // room for the time
const MARKED = { joined: 1, left: 1, died: 1, returned: 1, restarted: 1, stuck: 1, operator: 1 };
const STEPS_S = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];

const short = (name, most) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

export class Picture {
  constructor(model) {
    this.model = model;
    this.canvas = by("picture");
    this.tip = by("tip");
    this.windowS = 0;
    this.order = null;
    this.highlighted = null;
    this.cursor = null; // {row, at}
    this.hatch = new Map();
    this.makeTools();
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("mouseleave", () => this.hideTip());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.hideTip());
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
    by("spans").addEventListener("toggle", () => this.fillTable());
  }

  makeTools() {
    const box = by("window");
    for (const [name, seconds] of WINDOWS) {
      const button = element("button", { type: "button", textContent: name });
      button.setAttribute("aria-pressed", String(seconds === this.windowS));
      button.addEventListener("click", () => {
        this.windowS = seconds;
        for (const each of box.children) each.setAttribute("aria-pressed", String(each === button));
        this.draw();
      });
      box.append(button);
    }
    by("order").addEventListener("change", (event) => {
      this.order = event.target.value;
      this.draw();
    });
  }

  forgetColours() {
    this.hatch.clear();
    this.draw();
  }

  update() {
    const { group } = this.model;
    if (this.order === null) {
      this.order = group.partitions.id.length > 64 ? "owner" : "name";
      by("order").value = this.order;
    }
    this.legend();
    this.draw();
    if (by("spans").open) this.fillTable();
    const counts = group.members
      .filter((member) => member.partitions)
      .map((member) => `${member.id} ${member.partitions}`);
    this.canvas.setAttribute(
      "aria-label",
      `Owners of ${plural(group.partitions.id.length, this.model.about.noun)} over time. Now: ` +
        `${counts.slice(0, 12).join(", ") || "no owners"}${counts.length > 12 ? " and more" : ""}.`,
    );
  }

  legend() {
    const box = by("legend");
    const members = this.model.shownMembers();
    const wanted = members.map((member) => `${member.id}\n${member.state}`).join("\n");
    if (box.dataset.shown === wanted) return;
    box.dataset.shown = wanted;
    const focused = document.activeElement?.dataset?.owner;
    box.replaceChildren(
      ...members.map((member) => {
        const dot = element("span", { className: "dot" });
        dot.style.background = colour(this.model.colours.get(member.id) ?? 0);
        const button = element(
          "button",
          { type: "button", dataset: { owner: member.id, state: member.state } },
          dot,
          nameOf(member.id),
        );
        button.setAttribute("aria-pressed", String(this.highlighted === member.id));
        button.addEventListener("click", () => this.highlight(member.id));
        return button;
      }),
    );
    if (focused) box.querySelector(`[data-owner="${CSS.escape(focused)}"]`)?.focus();
  }

  highlight(owner) {
    this.highlighted = this.highlighted === owner ? null : owner;
    for (const each of by("legend").children) {
      each.setAttribute("aria-pressed", String(each.dataset.owner === this.highlighted));
    }
    this.draw();
  }

  // --- geometry ---

  rows() {
    const { id, owner, name } = this.model.group.partitions;
    const rows = id.map((partition, i) => ({ partition, name: name[i], owner: owner[i], i }));
    if (this.order === "owner") {
      rows.sort((a, b) => (a.owner < 0) - (b.owner < 0) || a.owner - b.owner || a.i - b.i);
    }
    return rows;
  }

  layout() {
    const { group } = this.model;
    const end = this.model.now();
    const known = end - group.begin;
    const window = this.windowS || Math.min(Math.max(known * 1.02, FIT_MIN_S), FIT_MAX_S);
    const rows = this.rows();
    const width = this.canvas.parentElement.clientWidth;
    const wished = rows.length <= 16 ? 22 : rows.length <= 40 ? 15 : rows.length <= 100 ? 8 : 0;
    const inner = wished ? wished * rows.length : Math.max(420, Math.min(rows.length, 640));
    const isNarrow = width < 620;
    const left = wished >= 8 ? (isNarrow ? 34 : 52) : 12;
    const right = isNarrow ? 8 : 108;
    return {
      rows, width, left, right, inner, begin: end - window, end, window,
      height: TOP + inner + BOTTOM,
      rowHeight: inner / Math.max(1, rows.length),
      x: (at) => left + ((at - (end - window)) / window) * (width - left - right),
    };
  }

  // --- drawing ---

  draw() {
    if (!this.model.group) return;
    const layout = (this.last = this.layout());
    const { canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(layout.width * ratio) || canvas.height !== Math.round(layout.height * ratio)) {
      canvas.width = Math.round(layout.width * ratio);
      canvas.height = Math.round(layout.height * ratio);
      canvas.style.height = `${layout.height}px`;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, layout.width, layout.height);
    const theme = {
      ink: themed("ink"), muted: themed("muted"), line: themed("line"), none: themed("none"),
      bad: themed("bad"), badSoft: themed("bad-soft"), card: themed("card"), raised: themed("raised"),
    };
    pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    this.drawTime(pen, layout, theme);
    this.drawRows(pen, layout, theme);
    this.drawGaps(pen, layout, theme);
    this.drawOwners(pen, layout, theme);
    this.drawMarks(pen, layout, theme);
    this.drawCursor(pen, layout, theme);
  }

  drawTime(pen, { begin, end, window, x, height, width, left, right, inner }, theme) {
    pen.fillStyle = theme.raised;
    pen.fillRect(left, TOP, width - left - right, inner);
    const step = STEPS_S.find((each) => (window / each) * 78 <= width - left - right) ?? 3600;
    pen.textAlign = "center";
    pen.fillStyle = theme.muted;
    pen.strokeStyle = theme.line;
    const zone = new Date(end * 1000).getTimezoneOffset() * 60;
    const first = Math.ceil((begin - zone) / step) * step + zone;
    for (let at = first; at <= end; at += step) {
      if (x(at) < left + 20 || x(at) > width - right - 4) continue;
      pen.fillText(clock(at, step < 60), x(at), height - 6);
      pen.beginPath();
      pen.moveTo(Math.round(x(at)) + 0.5, TOP + inner);
      pen.lineTo(Math.round(x(at)) + 0.5, TOP + inner + 5);
      pen.stroke();
    }
  }

  drawRows(pen, { rows, x, begin, end, rowHeight, left }, theme) {
    const gap = rowHeight >= 12 ? 3 : rowHeight >= 6 ? 1 : 0;
    const late = this.pattern(pen, theme);
    rows.forEach(({ partition }, row) => {
      const top = TOP + row * rowHeight + gap / 2;
      const spans = this.model.spans.get(partition) ?? [];
      for (let i = spans.length - 1; i >= 0; i--) {
        const { at, owner, expired } = spans[i];
        const until = i + 1 < spans.length ? spans[i + 1].at : end;
        if (until < begin) break;
        const from = Math.max(x(at), left);
        // A brief time without an owner is shown, too.
        const size = Math.max(x(until) - from, owner === null || expired ? 2 : 0.5);
        pen.globalAlpha = this.highlighted && owner !== this.highlighted ? 0.16 : 1;
        pen.fillStyle = owner === null ? theme.none : colour(this.model.colours.get(owner) ?? 0);
        if (expired) {
          pen.fillStyle = theme.badSoft;
          pen.fillRect(from, top, size, rowHeight - gap);
          pen.fillStyle = late;
        }
        pen.fillRect(from, top, size, rowHeight - gap);
      }
    });
    pen.globalAlpha = 1;
    if (rowHeight < 8) return;
    pen.textAlign = "right";
    rows.forEach(({ name, partition }, row) => {
      pen.fillStyle = this.model.stuck.has(partition) ? theme.bad : theme.muted;
      pen.font = `${this.model.stuck.has(partition) ? "bold " : ""}${rowHeight >= 12 ? 11 : 8}px system-ui, 'DejaVu Sans', sans-serif`;
      const text = short(name, 7);
      pen.fillText(text, left - 8, TOP + (row + 0.5) * rowHeight + (rowHeight >= 12 ? 4 : 3));
    });
    pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  }

  pattern(pen, theme) {
    const key = theme.bad;
    if (!this.hatch.has(key)) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 6;
      const brush = tile.getContext("2d");
      brush.strokeStyle = theme.bad;
      brush.lineWidth = 2;
      brush.beginPath();
      for (const shift of [-6, 0, 6]) {
        brush.moveTo(shift - 1, 7);
        brush.lineTo(shift + 7, -1);
      }
      brush.stroke();
      this.hatch.set(key, pen.createPattern(tile, "repeat"));
    }
    return this.hatch.get(key);
  }

  drawGaps(pen, { x, begin, end, inner, left, width, right }, theme) {
    for (const [from, until] of this.model.group.gaps) {
      if (until < begin || from > end) continue;
      const a = Math.max(x(from), left);
      const b = Math.min(x(until), width - right);
      pen.fillStyle = theme.card;
      pen.fillRect(a, TOP, b - a, inner);
      pen.fillStyle = theme.line;
      for (let at = Math.ceil(a / 5) * 5; at < b - 1; at += 5) pen.fillRect(at, TOP, 2, inner);
    }
  }

  // The owners now, beside the blocks of rows that they have.
  drawOwners(pen, { rows, rowHeight, width, right }, theme) {
    if (right < 40) return;
    const { owners, partitions } = this.model.group;
    const blocks = [];
    for (const [row, { owner, i }] of rows.entries()) {
      const last = blocks.at(-1);
      const key = partitions.expired[i] ? -2 : owner;
      if (last && last.key === key) last.end = row;
      else blocks.push({ key, owner, begin: row, end: row });
    }
    pen.textAlign = "left";
    let free = -Infinity;
    for (const { key, owner, begin, end } of blocks) {
      const middle = TOP + ((begin + end + 1) / 2) * rowHeight;
      if (middle - 6 < free) continue;
      free = middle + 6;
      const name = owner < 0 ? "no owner" : owners[owner][0];
      pen.fillStyle = key < 0 ? theme.bad : theme.ink;
      const text = short(name, 15);
      pen.fillText(text, width - right + 10, middle + 4);
      if (owner >= 0) {
        pen.fillStyle = colour(owners[owner][1]);
        pen.fillRect(width - right + 3, TOP + begin * rowHeight + 1, 3, (end - begin + 1) * rowHeight - 2);
      }
    }
  }

  drawMarks(pen, { x, begin, left, width, inner }, theme) {
    const marks = this.model.log.filter((entry) => MARKED[entry.kind] && entry.at >= begin);
    const free = [-Infinity, -Infinity];
    pen.textAlign = "left";
    for (const { at, kind, members, tone } of marks.slice(-60)) {
      const place = Math.round(x(at)) + 0.5;
      if (place < left) continue;
      pen.strokeStyle = pen.fillStyle = tone === "bad" ? theme.bad : theme.ink;
      pen.setLineDash([3, 3]);
      pen.beginPath();
      pen.moveTo(place, TOP - 4);
      pen.lineTo(place, TOP + inner);
      pen.stroke();
      pen.setLineDash([]);
      const text = kind === "stuck" ? "stuck" : kind === "operator" ? "checkpoint moved" : `${short(members[0] ?? "", 24)} ${kind}`;
      const wide = pen.measureText(text).width;
      const start = Math.min(place - 2, width - wide - 4);
      const level = free.findIndex((end) => end < start);
      if (level < 0) continue;
      free[level] = start + wide + 8;
      pen.fillText(text, start, level ? 10 : 24);
    }
  }

  drawCursor(pen, { x, rowHeight, inner, left, right, width }, theme) {
    if (!this.cursor) return;
    pen.strokeStyle = theme.ink;
    pen.globalAlpha = 0.6;
    const place = Math.round(x(this.cursor.at)) + 0.5;
    pen.beginPath();
    pen.moveTo(place, TOP);
    pen.lineTo(place, TOP + inner);
    pen.stroke();
    pen.globalAlpha = 1;
    pen.strokeRect(left, TOP + this.cursor.row * rowHeight, width - left - right, Math.max(rowHeight, 2));
  }

  // --- pointing ---

  point(event) {
    const { left, right, width, rowHeight, rows, begin, window } = this.last ?? {};
    if (!rows?.length) return;
    const box = this.canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const row = Math.floor((py - TOP) / rowHeight);
    const isInside = px >= left && px <= width - right && row >= 0 && row < rows.length;
    if (!isInside) return this.hideTip();
    this.cursor = { row, at: begin + ((px - left) / (width - left - right)) * window };
    this.showTip(px, py);
  }

  key(event) {
    const { rows, begin, end, window } = this.last ?? {};
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const step = steps[event.key];
    if (event.key === "Escape") return this.hideTip();
    if (!step || !rows?.length) return;
    event.preventDefault();
    const { row, at } = this.cursor ?? { row: 0, at: end };
    this.cursor = {
      row: Math.min(Math.max(row + step[0], 0), rows.length - 1),
      at: Math.min(Math.max(at + (step[1] * window) / 60, begin), end),
    };
    const { x, rowHeight } = this.last;
    this.showTip(x(this.cursor.at), TOP + (this.cursor.row + 1) * rowHeight);
    by("cursor-text").textContent = this.text().replaceAll("\n", ", ");
  }

  text() {
    const { row, at } = this.cursor;
    const { partition, name } = this.last.rows[row];
    const held = this.model.holder(partition, at);
    const what = this.model.isGap(at)
      ? "not read then"
      : !held ? "not known" : held.owner === null ? "no owner"
      : held.expired ? `${held.owner}, which does not renew` : held.owner;
    const since = held && !this.model.isGap(at) ? `\nsince ${clock(held.at)}, for ${span(at - held.at)}` : "";
    return `${this.model.about.noun} ${name} at ${clock(at)}\n${what}${since}`;
  }

  showTip(px, py) {
    this.tip.hidden = false;
    this.tip.textContent = this.text();
    const { width } = this.last;
    this.tip.style.left = `${Math.min(px + 14, width - this.tip.offsetWidth - 4)}px`;
    this.tip.style.top = `${py + 14}px`;
    this.draw();
  }

  hideTip() {
    if (this.tip.hidden && !this.cursor) return;
    this.tip.hidden = true;
    this.cursor = null;
    this.draw();
  }

  // --- the same as a table ---

  fillTable() {
    if (!by("spans").open || !this.model.group) return;
    const rows = this.rows().slice(0, 1000);
    by("spans-body").replaceChildren(
      ...rows.map(({ partition, name }) => {
        const spans = (this.model.spans.get(partition) ?? []).slice(-12).reverse();
        const text = spans.map(({ at, owner, expired }, i) => {
          const who = owner === null ? "no owner" : expired ? `${owner} (not renewing)` : owner;
          return `${who} from ${clock(at)} ${i ? `to ${clock(spans[i - 1].at)}` : "on"}`;
        });
        return element("tr", {},
          element("th", { scope: "row", textContent: name }),
          element("td", { textContent: text.join("; ") }));
      }),
    );
  }
}
