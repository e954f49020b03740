// Formats numbers, sizes, times and foreign text for the page.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
// Control characters, zero-width and direction marks, which can make a text look like another one.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** Format a number or BigInt as 1,234,567; null as a dash. */
export function count(value) {
  return value === null || value === undefined ? "–" : value.toLocaleString("en-US");
}

/** Format a size as "1.5 MiB". */
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

/** Format a time as 2026-11-22 17:05:01.234 in the browser's time zone; an invalid time as a dash. */
export function time(ms) {
  const date = new Date(Number(ms));
  if (ms === null || ms === undefined || Number(ms) <= 0 || Number.isNaN(date.getTime())) return "–";
  const pad = (number, width = 2) => String(number).padStart(width, "0");
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}.${pad(date.getMilliseconds(), 3)}`;
}

/** Format a duration as "12 ms", "3.4 s", "5 min", "2 h" or "9 d". */
export function span(ms) {
  if (ms === null || ms === undefined) return "–";
  const value = Number(ms);
  if (value < 1000) return `${Math.max(0, Math.round(value))} ms`;
  if (value < 60_000) return `${(value / 1000).toFixed(1)} s`;
  if (value < 3_600_000) return `${Math.round(value / 60_000)} min`;
  return value < 172_800_000 ? `${Math.round(value / 3_600_000)} h` : `${Math.round(value / 86_400_000)} d`;
}

/** Replace invisible characters of foreign text by ⟨U+202E⟩ and so on. Line feeds and tabs stay. */
export function visible(text) {
  return String(text).replace(UNSEEN, (one) => `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** As `visible`, on one line of at most *most* characters. */
export function brief(text, most = 160) {
  const start = String(text).slice(0, most + 1);
  return visible(start.slice(0, most)).replace(/[\n\t]/g, " ") + (start.length > most ? "…" : "");
}
