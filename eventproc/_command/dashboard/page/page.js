// Receives the readings, and has every part of the page show them.

import { ACTIONS, ChangeDialog, readToken } from "./change.js";
import { by, setText } from "./dom.js";
import { span } from "./format.js";
import { Log } from "./log.js";
import { Members } from "./members.js";
import { Model } from "./model.js";
import { Partitions } from "./partitions.js";
import { Picture } from "./picture.js";
import { Tiles } from "./tiles.js";
import { Verdict } from "./verdict.js";

const THEMES = ["system", "light", "dark"];
const SIGNS = { system: "◐", light: "○", dark: "●" };

function setTheme(theme, picture) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  by("theme").firstElementChild.textContent = SIGNS[theme];
  by("theme").setAttribute("aria-label", `Colours: ${theme === "system" ? "as the system" : theme}`);
  by("theme").title = by("theme").getAttribute("aria-label");
  picture?.forgetColours();
}

function watchTheme(picture) {
  let theme = localStorage.getItem("eventproc-theme") ?? "system";
  by("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    localStorage.setItem("eventproc-theme", theme);
    setTheme(theme, picture);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => picture.forgetColours());
  setTheme(theme, picture);
}

function live(state, text) {
  by("live").dataset.state = state;
  setText(by("live-text"), text);
}

async function start() {
  setTheme(localStorage.getItem("eventproc-theme") ?? "system");
  const model = new Model();
  model.about = await (await fetch("about")).json();
  const { about } = model;
  setText(by("title"), about.title);
  setText(by("subtitle"), [about.subtitle, about.namespace].filter(Boolean).join(" · "));
  setText(by("partitions-title"), `${about.noun[0].toUpperCase()}${about.noun.slice(1)}s`);
  document.title = `${about.title} · eventproc`;
  setText(by("foot"), `Read every ${span(about.every)} while a page is open. A lease expires after ${span(about.expiration)}; without progress for ${span(about.stuck_after)}, waiting events are stuck. Times are those of this browser's zone, by the store's clock.`);

  const token = readToken();
  const mayChange = about.actions.length > 0 && token !== null;
  const dialog = mayChange ? new ChangeDialog(token) : null;
  by("mode").hidden = false;
  setText(by("mode"), mayChange ? "changes allowed" : "read-only");
  by("mode").dataset.tone = mayChange ? "warning" : "";

  for (const action of ["pause", "resume"]) by(`${action}-group`).addEventListener("click", () => dialog.open(action, null));

  const picture = new Picture(model);
  const verdict = new Verdict(model);
  const actions = mayChange ? about.actions.map((each) => [ACTIONS[each].title, (partitions) => dialog.open(each, partitions)]) : null;
  const parts = [new Tiles(model), picture, new Members(model), new Partitions(model, actions)];
  const log = new Log(model);
  watchTheme(picture);

  const stream = new EventSource("events");
  stream.onopen = () => live("on", "live");
  stream.onerror = () => live("off", "not connected");
  stream.onmessage = ({ data }) => {
    const begun = performance.now();
    const { entries, isWhole } = model.receive(JSON.parse(data));
    verdict.update();
    if (model.group) {
      for (const part of parts) part.update();
      log.update(entries, isWhole);
      const isPaused = model.group.findings.some((each) => each.kind === "paused");
      by("pause-group").hidden = !mayChange;
      by("resume-group").hidden = !mayChange || !isPaused;
    }
    live(model.problem ? "off" : "on", model.problem ? "no answer" : "live");
    // For tests and measurements: when a reading is on the screen.
    document.documentElement.dataset.number = model.group?.number ?? 0;
    document.documentElement.dataset.refreshMs = (performance.now() - begun).toFixed(1);
  };
  setInterval(() => model.group && !document.hidden && picture.draw(), 1000);
}

start().catch((error) => {
  live("off", "not connected");
  setText(by("headline"), `The page could not start: ${error.message}`);
});
