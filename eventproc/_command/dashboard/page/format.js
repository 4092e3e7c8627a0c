// Numbers and times as text.

const NUMBER = new Intl.NumberFormat("en");
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const number = (value) => (value == null ? "?" : NUMBER.format(value));

export const compact = (value) =>
  value == null ? "?" : value < 10_000 ? NUMBER.format(Math.round(value)) : COMPACT.format(value);

export const rate = (value) =>
  value == null ? "?" : value > 0 && value < 10 ? value.toFixed(1) : compact(value);

export function span(seconds) {
  if (seconds == null) return "";
  if (seconds < 10) return `${seconds % 1 ? seconds.toFixed(1) : seconds} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

const two = (value) => String(value).padStart(2, "0");

export function clock(at, withSeconds = true) {
  const date = new Date(at * 1000);
  const short = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return withSeconds ? `${short}:${two(date.getSeconds())}` : short;
}

export const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
