// The members, as a table.

import { colour } from "./colours.js";
import { badge, by, element, nameOf, setText } from "./dom.js";
import { plural, rate, span } from "./format.js";

const TONES = { active: "good", dead: "bad", late: "bad", leaving: "warning", restarting: "warning", standby: "" };
const HEADS = [["Member", ""], ["State", ""], ["Owns", "num"], ["Handles", "num"], ["Renewed", "num"], ["Version", ""]];

export class Members {
  constructor(model) {
    this.model = model;
    this.cells = new Map(); // owner id -> cells
    this.table = by("members");
    this.table.tHead.append(element("tr", {},
      ...HEADS.map(([name, kind]) => element("th", { scope: "col", className: kind, textContent: name }))));
  }

  update() {
    const { members } = this.model.group;
    const ids = members.map((member) => member.id).join("\n");
    if (this.shown !== ids) {
      this.shown = ids;
      this.cells.clear();
      this.table.tBodies[0].replaceChildren(...members.map((member) => this.row(member)));
      if (!members.length) {
        this.table.tBodies[0].append(element("tr", {},
          element("td", { className: "nothing", colSpan: HEADS.length, textContent: "No members." })));
      }
    }
    const most = Math.max(1, ...members.map((member) => member.partitions));
    for (const member of members) this.fill(this.cells.get(member.id), member, most);
    setText(by("members-count"), plural(members.filter((m) => m.state !== "dead").length, "live member"));
  }

  row(member) {
    const dot = element("span", { className: "dot" });
    dot.style.background = colour(this.model.colours.get(member.id) ?? 0);
    const bar = element("i");
    const cells = {
      state: element("td"),
      owns: element("span"),
      bar,
      drain: element("td", { className: "num" }),
      silent: element("td", { className: "num" }),
      version: element("td"),
    };
    this.cells.set(member.id, cells);
    return element("tr", {},
      element("th", { scope: "row" }, element("span", { className: "owner" }, dot, nameOf(member.id))),
      cells.state,
      element("td", {}, element("div", { className: "bar" }, cells.owns, bar)),
      cells.drain, cells.silent, cells.version);
  }

  fill(cells, member, most) {
    if (cells.shownState !== member.state) {
      cells.shownState = member.state;
      cells.state.replaceChildren(badge(member.state === "late" ? "not renewing" : member.state, TONES[member.state] ?? ""));
    }
    setText(cells.owns, String(member.partitions));
    cells.bar.style.width = `${(member.partitions / most) * 48}px`;
    setText(cells.drain, member.drain == null ? "" : `${rate(member.drain)} /s`);
    const silent = member.silent == null ? null : member.silent + this.model.drift();
    setText(cells.silent, silent == null ? "" : `${span(silent)} ago`);
    setText(cells.version, member.is_foreign ? "an Azure SDK" : member.version);
  }
}
