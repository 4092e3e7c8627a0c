// Totals, each with its course.

import { by, element, setText, setTone } from "./dom.js";
import { compact, plural, rate, span } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const POINTS_MAX = 240;

function path(values, most) {
  const shown = values.map((value, i) => [i, value]).filter(([, value]) => value != null);
  if (shown.length < 2) return "";
  const x = (i) => ((i / (values.length - 1)) * 100).toFixed(2);
  const y = (value) => (32 - (value / (most || 1)) * 29).toFixed(2);
  return shown.map(([i, value], n) => `${n ? "L" : "M"}${x(i)} ${y(value)}`).join("");
}

class Tile {
  constructor(box, title) {
    this.value = element("p", { className: "value" });
    this.note = element("p", { className: "note" });
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("viewBox", "0 0 100 34");
    this.svg.setAttribute("preserveAspectRatio", "none");
    this.svg.setAttribute("aria-hidden", "true");
    this.paths = ["area", "first", "second"].map((name) => {
      const made = document.createElementNS(SVG, "path");
      made.setAttribute("class", name);
      this.svg.append(made);
      return made;
    });
    box.append(element("article", { className: "tile" },
      element("h3", { textContent: title }), this.value, this.note, this.svg));
  }

  show(value, unit, note, tone = "") {
    this.value.replaceChildren(value, element("small", { textContent: unit }));
    setText(this.note, note);
    setTone(this.note, tone);
  }

  course(first, second = []) {
    const most = Math.max(1, ...first.filter((v) => v != null), ...second.filter((v) => v != null));
    const line = path(first, most);
    this.paths[0].setAttribute("d", line ? `${line}L100 34L0 34Z` : "");
    this.paths[1].setAttribute("d", line);
    this.paths[2].setAttribute("d", path(second, most));
  }
}

export class Tiles {
  constructor(model) {
    this.model = model;
    const box = by("tiles");
    this.lag = new Tile(box, "Events that wait");
    this.rates = new Tile(box, "Handled, and arriving (dashed)");
    this.members = new Tile(box, "Members");
    this.served = new Tile(box, "With a live owner");
  }

  update() {
    const { group, samples, about } = this.model;
    const step = Math.max(1, Math.ceil(samples.length / POINTS_MAX));
    const shown = samples.filter((_, i) => (samples.length - 1 - i) % step === 0);
    const column = (n) => shown.map((sample) => sample[n]);
    const [, lag, arrival, drain, members, unserved] = samples.at(-1) ?? [];
    const count = group.partitions.id.length;

    this.lag.show(about.asks_hub ? compact(lag) : "?", "", this.lagNote(lag, arrival, drain));
    this.lag.course(column(1));
    this.rates.show(rate(drain), " /s", about.asks_hub ? `${rate(arrival)} /s arrive` : "by checkpoints");
    this.rates.course(column(3), column(2));
    const dead = group.members.filter((m) => m.state === "dead" || m.state === "late").length;
    const foreign = group.members.filter((m) => m.is_foreign).length;
    this.members.show(String(members ?? 0), " live",
      dead ? `${dead} not renewing` : foreign ? `${foreign} of an Azure SDK` : members ? "all renew in time" : "nobody is running",
      dead ? "bad" : "");
    this.members.course(column(4));
    this.served.show(String(count - (unserved ?? 0)), ` of ${plural(count, about.noun)}`,
      unserved ? `${unserved} without` : this.oldest(), unserved ? "bad" : "");
    this.served.course(column(5).map((value) => (value == null ? null : count - value)));
  }

  lagNote(lag, arrival, drain) {
    if (!this.model.about.asks_hub) return "needs a connection string";
    if (lag == null) return "the hub did not answer";
    if (!lag) return "everything is handled";
    if (drain == null || arrival == null) return "measuring";
    if (drain <= arrival) return lag > arrival * 10 ? "it does not get less" : "about as many arrive as are handled";
    return `about ${span(lag / (drain - arrival))} to go`;
  }

  oldest() {
    const { written, lag } = this.model.group.partitions;
    const ages = written.filter((age, i) => age != null && lag[i] !== 0);
    return ages.length ? `oldest checkpoint ${span(Math.max(...ages))}` : "";
  }
}
