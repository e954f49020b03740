// A list of messages with the bar above it, which has links to other pages, and the field that filters.

import { el, to } from "./dom.js";
import { findBar } from "./finding.js";
import { count, visible } from "./text.js";

/**
 * Put *list* into *result*. parts: content of the bar, of which a list is the links to other pages; more: see findBar;
 * skipped: damaged records that were left out; refused: problems of queues that could not be read.
 */
export function showResults(result, list, { asked, signal, parts, more = null, skipped = [], refused = [] }) {
  const bar = el("div", { class: "resultbar" },
    parts.map((part) => (Array.isArray(part) ? el("span", { class: "steps" }, part) : part)));
  result.append(bar, findBar(list, asked, { more, pages: bar, signal }), list.element, ...notes(skipped, refused));
}

/** Return a link of the bar, or its name alone if there is no such page. */
export function step(name, href, isThere) {
  return isThere ? el("a", { class: "button", href }, name) : el("span", { class: "button off", "aria-disabled": "true" }, name);
}

function notes(skipped, refused) {
  const damage = skipped.length > 0 && el("p", { class: "warn" }, `${count(skipped.length)} damaged ${skipped.length === 1 ? "record was" : "records were"} left out: see `, el("a", { href: to("/damage") }, "Damage"), ".");
  const queues = refused.map(({ queue_id, reason, detail }) => el("p", { class: "warn" }, `Queue ${queue_id} is left out: ${visible(reason)}, ${visible(detail)}`));
  return [damage, ...queues].filter(Boolean);
}
