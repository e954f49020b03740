// Requests as curl commands and Python programs, with all values quoted; and the clipboard.

import { token, writeExactly } from "./api.js";
import { el } from "./dom.js";

/** Quote *text* as one word of a POSIX shell. */
export function shellWord(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Return *text* as a Python string literal in ASCII. */
export function pythonText(text) {
  const escaped = Array.from(text, (one) => {
    const code = one.codePointAt(0);
    if (one === '"' || one === "\\") return `\\${one}`;
    if (code >= 32 && code < 127) return one;
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
  return `"${escaped.join("")}"`;
}

/** Return the curl command for *url*, with *body* as JSON if there is one. It never contains the token itself. */
export function asCurl(url, body) {
  const bearer = token.held === null ? "" : ' -H "Authorization: Bearer $TIDEMARK_TOKEN"';
  const data = body === undefined ? "" : ` -H "Content-Type: application/json" -d ${shellWord(writeExactly(body))}`;
  return `curl -sS${bearer}${data} ${shellWord(String(url))}`;
}

/** Return the Python program for *url*, with *body* as JSON if there is one. It needs no installed packages. */
export function asPython(url, body) {
  const lines = ["import json"];
  if (token.held !== null) lines.push("import os");
  lines.push("import urllib.request", "", `request = urllib.request.Request(${pythonText(String(url))})`);
  if (body !== undefined) {
    lines.push(`request.data = ${pythonText(writeExactly(body))}.encode()`, 'request.add_header("Content-Type", "application/json")');
  }
  if (token.held !== null) {
    lines.push('request.add_header("Authorization", "Bearer " + os.environ["TIDEMARK_TOKEN"])');
  }
  lines.push("with urllib.request.urlopen(request) as answer:", "    print(json.dumps(json.load(answer), indent=2))", "");
  return lines.join("\n");
}

/** Copy *text* to the clipboard; return true on success. */
export async function copy(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // not allowed: try execCommand
    }
  }
  const area = el("textarea", { class: "unseen", "aria-label": "To copy", value: text });
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy"); // plain HTTP has no navigator.clipboard
  area.remove();
  return done;
}

/** Show a message for a moment, also to screen readers. */
export function say(text) {
  const place = document.getElementById("said");
  place.textContent = text;
  setTimeout(() => place.textContent === text && (place.textContent = ""), 2500);
}

/** Return buttons that copy a request for *url*, with *body* if there is one. */
export function copyButtons(url, body) {
  const button = (name, text) => el("button", { type: "button", class: "quiet", on: { click: async () => {
    say((await copy(text())) ? `Copied as ${name}` : "The browser does not allow the console to copy");
  } } }, `Copy as ${name}`);
  return el("span", { class: "copying" }, button("curl", () => asCurl(url, body)), button("Python", () => asPython(url, body)));
}
