// A colour for each member, by its number, and the page's colours for the canvas. Neighbours differ
// in lightness as well as in hue, so that they can be told apart without seeing hues.

const FIRST = [
  [262, 0.62], [75, 0.8], [158, 0.66], [18, 0.62], [312, 0.7], [212, 0.8],
  [110, 0.78], [288, 0.52], [42, 0.7], [180, 0.54], [345, 0.78], [238, 0.5],
];
const GOLDEN_ANGLE = 137.508;
const LIGHTNESS = [0.66, 0.8, 0.54];

export function colour(owner) {
  const [hue, lightness] =
    FIRST[owner] ?? [(owner * GOLDEN_ANGLE + 20) % 360, LIGHTNESS[owner % LIGHTNESS.length]];
  return `oklch(${lightness} 0.135 ${hue})`;
}

let probe = null;

export function themed(name) {
  if (!probe) {
    probe = document.createElement("i");
    probe.hidden = true;
    document.body.append(probe);
  }
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
