// The dialog of every change: ask, show what changes, confirm.

import { by, element, nameOf } from "./dom.js";
import { number, plural } from "./format.js";

const VALUES = {
  back: ["How many events back", "1000", (text) => `-${text.replace(/^[-+]/, "")}`],
  forward: ["How many events forward", "1000", (text) => `+${text.replace(/^[-+]/, "")}`],
  number: ["Sequence number of the next event", "", (text) => text],
  time: ["Time, for example 2026-01-31T08:00:00Z", "", (text) => text],
};

// Buttons of selected partitions, and what the dialog asks for each: the id of a part of its form.
export const ACTIONS = {
  reset: { title: "Move checkpoints", ask: "change-ask" },
  pause: { title: "Pause", ask: "change-why" },
  resume: { title: "Resume" },
};

// The token is in the part of the URL that browsers do not send; it is kept for this tab alone, and
// taken out of the address so that nobody copies it by accident.
export function readToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("eventproc-token", given);
    history.replaceState(null, "", location.pathname);
  }
  return given ?? sessionStorage.getItem("eventproc-token");
}

export class ChangeDialog {
  constructor(token) {
    this.token = token;
    this.dialog = by("change");
    this.plan = null;
    by("change-kind").addEventListener("change", () => this.ask());
    by("change-cancel").addEventListener("click", () => this.dialog.close());
    by("change-next").addEventListener("click", () => this.next());
    by("change-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.next();
    });
  }

  // Without partitions it is of the whole group.
  open(action, partitions) {
    this.action = action;
    this.partitions = partitions;
    this.plan = null;
    by("change-title").textContent = ACTIONS[action].title;
    by("change-what").textContent = this.what();
    by("change-plan").replaceChildren();
    by("change-error").textContent = "";
    this.showAsk(ACTIONS[action].ask);
    this.button("Show what changes", "primary");
    by("change-cancel").textContent = "Cancel";
    this.ask();
    this.dialog.showModal();
  }

  what() {
    if (!this.partitions) return "The whole group";
    if (this.partitions.length > 12) return plural(this.partitions.length, "partition");
    return `Partition${this.partitions.length > 1 ? "s" : ""} ${this.partitions.join(", ")}`;
  }

  showAsk(id) {
    for (const each of ["change-ask", "change-why"]) by(each).hidden = each !== id;
  }

  ask() {
    const value = VALUES[by("change-kind").value];
    by("change-value-label").hidden = !value;
    if (value) {
      by("change-value-name").textContent = value[0];
      by("change-value").value = value[1];
    }
  }

  button(text, kind) {
    const button = by("change-next");
    button.hidden = false;
    button.textContent = text;
    button.className = kind;
    button.disabled = false;
  }

  target() {
    const kind = by("change-kind").value;
    return VALUES[kind] ? VALUES[kind][2](by("change-value").value.trim()) : kind;
  }

  async next() {
    by("change-next").disabled = true;
    by("change-error").textContent = "";
    try {
      if (this.plan) await this.confirm();
      else await this.show();
    } catch (error) {
      by("change-error").textContent = error.message;
      by("change-next").disabled = false;
    }
  }

  async post(path, body) {
    const answer = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Eventproc-Token": this.token ?? "" },
      body: JSON.stringify(body),
    });
    const found = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(found.error ?? `The answer was ${answer.status}.`);
    return found;
  }

  async show() {
    this.plan = await this.post("changes", {
      action: this.action, partitions: this.partitions, is_whole: !this.partitions,
      to: this.target(), keeps_state: by("change-keeps").checked, // of reset
      reason: by("change-reason").value.trim(), // of pause
    });
    this.showAsk(null);
    if (this.action !== "reset") {
      by("change-plan").replaceChildren(element("p", { textContent: this.plan.text }));
      const what = this.partitions ? plural(this.partitions.length, "partition") : "the group";
      return this.button(`${ACTIONS[this.action].title} ${what}`, "danger");
    }
    const needed = this.plan.changes.filter((change) => change.is_needed).length;
    by("change-plan").replaceChildren(this.table(), ...this.plan.warnings.map((text) => element("p", { className: "warn", textContent: text })));
    if (needed) return this.button(`Move ${plural(needed, "checkpoint")}`, "danger");
    by("change-next").hidden = true;
    by("change-error").textContent = "Nothing to change: every checkpoint is already there.";
  }

  async confirm() {
    const plan = this.plan;
    this.plan = null;
    const done = await this.post("changes/confirm", { id: plan.id });
    const { changes = [] } = done;
    const moved = changes.filter((change) => change.is_moved).length;
    const failed = changes.filter((change) => change.error);
    by("change-plan").replaceChildren(
      element("p", { role: "status", textContent: done.text ?? `${plural(moved, "checkpoint")} moved. The owners begin there within seconds.` }),
      ...failed.map((change) => element("p", { className: "error", textContent: `Partition ${change.partition_id}: ${change.error}` })),
    );
    by("change-next").hidden = true;
    by("change-cancel").textContent = "Close";
  }

  table() {
    const rows = this.plan.changes.map((change) => {
      const again = change.repeated_count ? `${number(change.repeated_count)} again` : "";
      const skipped = change.skipped_count ? `${number(change.skipped_count)} skipped` : "";
      return element("tr", {},
        element("th", { scope: "row", textContent: change.partition_id }),
        element("td", { className: "num", textContent: change.from_sequence_number == null ? "none" : number(change.from_sequence_number) }),
        element("td", { className: "num", textContent: change.is_needed ? number(change.to_sequence_number) : "as it is" }),
        element("td", { textContent: again || skipped }),
        element("td", { textContent: change.state }),
        element("td", {}, nameOf(change.owner_id ?? "")));
    });
    const head = element("tr", {}, ...["Partition", "From", "To", "Events", "State", "Held by"].map((name) => element("th", { scope: "col", textContent: name })));
    return element("div", { className: "scroll", tabIndex: 0 }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
  }
}
