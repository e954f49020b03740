// Formats numbers, sizes, durations and foreign text for the page.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
// Control characters, zero-width, direction and tag marks, which can make a text look like another one.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
// Joiners and tags are parts of emoji such as 👩‍🚀. Only the sequences that Unicode lists count, so that none can hide elsewhere.
const JOINS = /[\u200d\u{e0020}-\u{e007f}]/u;
const EMOJI_OR_UNSEEN = new RegExp(`\\p{RGI_Emoji}|${UNSEEN.source}`, "gv");

/** Format a number or BigInt as 1,234,567; null as a dash. */
export function count(value) {
  return value === null || value === undefined ? "–" : value.toLocaleString("en-US");
}

/** Remove the separators of a number that `count` wrote: 1,234,567 becomes 1234567. Other text stays as it is. */
export function plainNumber(text) {
  return /^\d{1,3}(,\d{3})+$/.test(text) ? text.replaceAll(",", "") : text;
}

/** Format the offsets from *min* to before *end* as "0 to 776"; null if there are none. */
export function offsets(min, end) {
  return BigInt(end) > BigInt(min) ? `${count(min)} to ${count(BigInt(end) - 1n)}` : null;
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

/** Format a duration as "12 ms", "3.4 s", "5 min", "2 h" or "9 d". */
export function span(ms) {
  if (ms === null || ms === undefined) return "–";
  const value = Number(ms);
  if (value < 1000) return `${Math.max(0, Math.round(value))} ms`;
  if (value < 60_000) return `${(value / 1000).toFixed(1)} s`;
  if (value < 3_600_000) return `${Math.round(value / 60_000)} min`;
  return value < 172_800_000 ? `${Math.round(value / 3_600_000)} h` : `${Math.round(value / 86_400_000)} d`;
}

/** Replace invisible characters of foreign text by ⟨U+202E⟩ and so on. Line feeds, tabs and emoji stay. */
export function visible(text) {
  const whole = String(text);
  if (!JOINS.test(whole)) return whole.replace(UNSEEN, numbered);
  return whole.replace(EMOJI_OR_UNSEEN, (one) => (isUnseen(one) ? numbered(one) : one));
}

function isUnseen(one) {
  return one.search(UNSEEN) === 0; // a joiner within an emoji is not its first character
}

function numbered(one) {
  return `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** As `visible`, on one line of at most *most* characters. */
export function brief(text, most = 160) {
  const start = String(text).slice(0, most + 1);
  return visible(start.slice(0, most)).replace(/[\n\t]/g, " ") + (start.length > most ? "…" : "");
}
