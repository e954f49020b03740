// A request as text that runs elsewhere: curl and Python, quoted whatever it holds; and the clipboard.

import { token } from "./api.js";
import { el } from "./dom.js";

/** One word of a POSIX shell. */
export function shellWord(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** A Python string literal, in ASCII. */
export function pythonText(text) {
  const escaped = Array.from(text, (one) => {
    const code = one.codePointAt(0);
    if (one === '"' || one === "\\") return `\\${one}`;
    if (code >= 32 && code < 127) return one;
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
  return `"${escaped.join("")}"`;
}

/** The command that asks for *url*. The token itself is never in it. */
export function asCurl(url) {
  const bearer = token.held === null ? "" : ' -H "Authorization: Bearer $TIDEMARK_TOKEN"';
  return `curl -sS${bearer} ${shellWord(String(url))}`;
}

/** The program that does; it needs nothing installed. */
export function asPython(url) {
  const lines = ["import json"];
  if (token.held !== null) lines.push("import os");
  lines.push("import urllib.request", "", `request = urllib.request.Request(${pythonText(String(url))})`);
  if (token.held !== null) {
    lines.push('request.add_header("Authorization", "Bearer " + os.environ["TIDEMARK_TOKEN"])');
  }
  lines.push("with urllib.request.urlopen(request) as answer:", "    print(json.dumps(json.load(answer), indent=2))", "");
  return lines.join("\n");
}

/** Puts *text* on the clipboard; whether that went well. */
export async function copy(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // not allowed: the old way may be
    }
  }
  const area = el("textarea", { class: "unseen", "aria-label": "To copy", value: text });
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy"); // plain HTTP has no navigator.clipboard
  area.remove();
  return done;
}

/** Tell something to everybody, screen readers too, for a moment. */
export function say(text) {
  const place = document.getElementById("said");
  place.textContent = text;
  setTimeout(() => place.textContent === text && (place.textContent = ""), 2500);
}

/** Buttons that copy a request for *url*. */
export function copyButtons(url) {
  const button = (name, text) => el("button", { type: "button", class: "quiet", on: { click: async () => {
    say((await copy(text())) ? `Copied as ${name}` : "The browser does not allow the console to copy");
  } } }, `Copy as ${name}`);
  return el("span", { class: "copying" }, button("curl", () => asCurl(url)), button("Python", () => asPython(url)));
}
