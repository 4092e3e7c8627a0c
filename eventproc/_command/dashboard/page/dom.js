// Elements. All text is set as text, never as HTML: names and errors come from elsewhere.

export const by = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "dataset") Object.assign(made.dataset, value);
    else if (name.includes("-") || name === "role" || name === "scope") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setTone(node, tone) {
  if (node.dataset.tone !== tone) node.dataset.tone = tone;
}

export const badge = (text, tone) =>
  element("span", { className: "badge", textContent: text, dataset: { tone } });

// A name of any length, in one line; the whole of it appears when it is pointed at.
export const nameOf = (name) => element("span", { className: "name", textContent: name, title: name });
