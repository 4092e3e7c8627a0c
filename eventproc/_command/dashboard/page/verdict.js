// The most important sentence, and why.

import { badge, by, element, setText, setTone } from "./dom.js";
import { number, plural, span } from "./format.js";

export class Verdict {
  constructor(model) {
    this.model = model;
  }

  update() {
    const { group, problem, about } = this.model;
    const findings = group?.findings ?? [];
    const [tone, headline] = this.summary(group, problem, findings, about);
    setTone(by("verdict"), tone);
    setText(by("headline"), headline);
    const shown = problem
      ? [{ kind: "no answer", text: problem, remedy: "What is below is the state before. It is read again and again.", is_stuck: true }, ...findings]
      : findings;
    const wanted = JSON.stringify(shown.map((each) => [each.text, each.remedy]));
    if (by("findings").dataset.shown === wanted) return;
    by("findings").dataset.shown = wanted;
    by("findings").replaceChildren(
      ...shown.slice(0, 12).map((each) =>
        element("article", { className: "finding" },
          badge(each.kind, each.is_stuck ? "bad" : "warning"),
          element("p", { textContent: each.text }),
          element("p", { className: "remedy", textContent: each.remedy }))),
      ...(shown.length > 12 ? [element("p", { textContent: `and ${shown.length - 12} more` })] : []),
    );
    document.title = `${tone === "bad" ? "● " : ""}${about.title} · eventproc`;
  }

  summary(group, problem, findings, about) {
    if (problem && !group) return ["bad", "The group cannot be read"];
    if (problem) return ["bad", "No answer: this is an old state"];
    const { noun } = about;
    const count = group.partitions.id.length;
    if (!count && !group.members.length) return ["wait", "There is no trace of this group in the store yet"];
    const stuck = this.model.stuck.size;
    if (stuck) {
      const longest = Math.max(...findings.filter((f) => f.is_stuck).map((f) => group.at - f.since));
      return ["bad", `${stuck === count ? `All ${plural(count, noun)}` : plural(stuck, noun)} ${stuck === 1 ? "is" : "are"} stuck, the longest for ${span(longest)}`];
    }
    if (findings.some((f) => f.kind === "stopped")) return ["wait", "The group is stopped, and everything is handled"];
    const unserved = group.partitions.owner.filter((owner, i) => owner < 0 || group.partitions.expired[i]).length;
    if (unserved) return ["warning", `${plural(unserved, noun)} without a live owner: about to be claimed`];
    if (findings.length) return ["warning", findings.length === 1 ? "One thing needs attention" : `${findings.length} things need attention`];
    return ["good", `All ${number(count)} ${noun}s are in good order`];
  }
}
