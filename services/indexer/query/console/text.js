// Numbers, sizes, times and foreign text, as people read them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
// Controls, zero-width and direction marks: what makes text look like other text.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** 1,234,567 of a number or BigInt; a dash for null. */
export function count(value) {
  return value === null || value === undefined ? "–" : value.toLocaleString("en-US");
}

/** 1.5 MiB. */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  let value = Number(bytes);
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(value) : value.toFixed(value < 10 ? 2 : 1)} ${UNITS[unit]}`;
}

export const rate = (bytesPerSecond) => `${size(bytesPerSecond)}/s`;

/** 2026-11-22 17:05:01.234, in the reader's own zone; a dash for what is no time. */
export function time(ms) {
  const date = new Date(Number(ms));
  if (ms === null || ms === undefined || Number(ms) <= 0 || Number.isNaN(date.getTime())) return "–";
  const pad = (number, width = 2) => String(number).padStart(width, "0");
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}.${pad(date.getMilliseconds(), 3)}`;
}

/** "12 ms", "3.4 s", "5 min", "2 h", "9 d". */
export function span(ms) {
  if (ms === null || ms === undefined) return "–";
  const value = Number(ms);
  if (value < 1000) return `${Math.max(0, Math.round(value))} ms`;
  if (value < 60_000) return `${(value / 1000).toFixed(1)} s`;
  if (value < 3_600_000) return `${Math.round(value / 60_000)} min`;
  return value < 172_800_000 ? `${Math.round(value / 3_600_000)} h` : `${Math.round(value / 86_400_000)} d`;
}

/** Foreign text with its unseen characters shown as ⟨U+202E⟩. Line feeds and tabs stay. */
export function visible(text) {
  return String(text).replace(UNSEEN, (one) => `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** The same on one line, no longer than *most* characters. */
export function brief(text, most = 160) {
  const start = String(text).slice(0, most + 1);
  return visible(start.slice(0, most)).replace(/[\n\t]/g, " ") + (start.length > most ? "…" : "");
}
