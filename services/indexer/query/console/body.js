// A message's body: bytes → text, JSON and hex.

import { el } from "./dom.js";
import { visible } from "./text.js";

const SHOWN_BYTES = 64 * 1024; // shown at first; a button shows all
const DEEPEST_INDENT = 40;

/** Decode base64. */
export function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
}

/** Decode UTF-8; return null for other bytes. */
export function textOf(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** Indent JSON; numbers and strings stay as they are written. Return null for a text that is not JSON. */
export function indented(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:,]|[^\s[\]{}:,"]+/gs) ?? [];
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.min(depth, DEEPEST_INDENT))}`;
  return tokens.map((token, i) => {
    if (token === "{" || token === "[") {
      depth += 1;
      return tokens[i + 1] === "}" || tokens[i + 1] === "]" ? token : token + line();
    }
    if (token === "}" || token === "]") {
      depth -= 1;
      return tokens[i - 1] === "{" || tokens[i - 1] === "[" ? token : line() + token;
    }
    if (token === ",") return token + line();
    return token === ":" ? ": " : token;
  }).join("");
}

/** Format bytes as two hex digits each: "0a ff". */
export function pairsOf(bytes) {
  return Array.from(bytes, (one) => one.toString(16).padStart(2, "0")).join(" ");
}

/** Return a hex dump: offset, bytes, ASCII. *start*: the first byte's offset; *width*: bytes per line. */
export function hexOf(bytes, { start = 0, width = 16 } = {}) {
  const lines = [];
  const first = BigInt(start);
  const digits = Math.max(8, (first + BigInt(bytes.length)).toString().length);
  for (let at = 0; at < bytes.length; at += width) {
    const row = bytes.subarray(at, at + width);
    const hex = pairsOf(row).padEnd(3 * width - 1);
    const ascii = Array.from(row, (one) => (one >= 32 && one < 127 ? String.fromCharCode(one) : "·")).join("");
    lines.push(`${(first + BigInt(at)).toString().padStart(digits, "0")}  ${hex}  ${ascii}`);
  }
  return lines.join("\n");
}

export const hexWidth = () => (matchMedia("(max-width: 720px)").matches ? 8 : 16);

/** Return the body with buttons for its views; the most readable one is shown first. */
export function bodyView(bytes) {
  const text = textOf(bytes);
  const json = text === null ? null : indented(text);
  const views = { Text: text !== null, JSON: json !== null, Hex: true };
  const output = el("pre", { class: "body", tabindex: "0", "aria-label": "Body" });
  const more = el("button", { type: "button", class: "quiet", on: { click: () => show(chosen, true) } }, "Show all");
  let chosen = json !== null ? "JSON" : text !== null ? "Text" : "Hex";
  const tabs = Object.keys(views).filter((name) => views[name]).map((name) =>
    el("button", { type: "button", on: { click: () => show(name) } }, name));

  function show(name, all = false) {
    chosen = name;
    for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.textContent === name));
    const isCut = !all && bytes.length > SHOWN_BYTES;
    const part = isCut ? bytes.subarray(0, SHOWN_BYTES) : bytes;
    const cut = (whole) => (isCut ? whole.slice(0, SHOWN_BYTES) : whole);
    output.textContent = name === "Hex" ? hexOf(part, { width: hexWidth() }) : visible(cut(name === "JSON" ? json : text));
    output.classList.toggle("hex", name === "Hex");
    if (!bytes.length) output.textContent = "(empty)";
    more.hidden = !isCut;
  }
  show(chosen);
  return el("div", { class: "bodyview" }, el("div", { class: "tabs", role: "group", "aria-label": "Body as" }, tabs, more), output);
}
