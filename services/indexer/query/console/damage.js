// The page Damage: the ledger of damage, and the bytes at a damaged place.

import { get, urlOf } from "./api.js";
import { bytesOf, hexOf, hexWidth } from "./body.js";
import { copyButtons } from "./copying.js";
import { el, facts, table, to } from "./dom.js";
import { failure } from "./failures.js";
import { brief, count, size, visible } from "./text.js";
import { moment } from "./times.js";

const BEFORE_BYTES = 32; // shown before and after the place
const MOST_BYTES = 1024; // shown of the place
const MEANING = {
  MAGIC: "No record and no blank record starts here.",
  LENGTH: "The record's lengths contradict each other, or exceed the file's end.",
  POSITION: "The record contains another physical offset: stale or misplaced bytes.",
  BODY_CRC: "The lengths are right, but the body does not match its checksum.",
  NUMBER: "A property that must be a number is not a number.",
  PROPERTY_CRC: "The record does not match the checksum in its properties.",
  FILE_MISSING: "A file of the log is missing.",
};

export async function damage(page, parameters, { signal }) {
  const relative = "v1/corruptions";
  const query = { after: parameters.get("after") ?? "" };
  page.append(el("header", { class: "head" }, el("h1", {}, "Damage"), copyButtons(urlOf(relative, query))));
  const answer = await get(relative, query, signal);
  const place = parameters.get("place");
  const rows = answer.corruptions.map((one) => [
    el("a", { href: to("/damage", { after: query.after, place: one.physical_offset }), "aria-current": String(one.physical_offset) === place && "true" }, count(one.physical_offset)),
    size(one.size), brief(one.reason), one.topic === null ? "–" : brief(`${one.topic}/${one.queue_id}`), moment(one.found_ms),
  ]);
  page.append(
    table("Damaged places", [["Place", "number"], ["Size", "number wide"], "What", "Queue", ["Found", "wide"]], rows,
      { empty: "No damage. The pipeline checks every record before it becomes visible, and lists failures here." }),
    answer.next_after === null ? "" : el("p", {}, el("a", { class: "button", href: to("/damage", { after: answer.next_after }) }, "Next page")));
  const chosen = answer.corruptions.find((one) => String(one.physical_offset) === place);
  if (chosen) page.append(await view(chosen, signal));
}

async function view(one, signal) {
  const card = el("section", { class: "card" }, el("h2", {}, `At ${count(one.physical_offset)}`),
    el("p", {}, MEANING[one.reason] ?? visible(one.reason)),
    facts([["Reason", visible(one.reason)], ["Size", `${count(one.size)} B`], ["Queue offset", count(one.queue_offset)]]));
  try {
    card.append(await dump(one, signal));
  } catch (problem) {
    card.append(failure(problem));
  }
  card.append(el("div", { class: "actions" },
    el("a", { class: "button", href: to("/log", { from: one.physical_offset }) }, "Show in the log"),
    copyButtons(urlOf("v1/log/bytes", { from: one.physical_offset, size: MOST_BYTES }))));
  return card;
}

/** Return a hex dump of the place, which is marked, and of the bytes before and after it. */
async function dump(one, signal) {
  const start = BigInt(one.physical_offset);
  const width = BigInt(hexWidth());
  const before = BigInt(BEFORE_BYTES);
  let from = start > before ? start - before : 0n;
  const file = await get("v1/log", { from: start, limit: 1 }, signal);
  const fileStart = BigInt(file.files[0]?.start ?? 0);
  if (from < fileStart) from = fileStart;
  const answer = await get("v1/log/bytes", { from, size: BEFORE_BYTES + MOST_BYTES }, signal);
  const bytes = bytesOf(answer.data);
  const lead = Number(start - from);
  const length = Math.min(bytes.length - lead, Number(one.size));
  const part = (a, b) => hexOf(bytes.subarray(a, b), { start: from + BigInt(a), width: Number(width) });
  const behind = bytes.subarray(lead + length, lead + length + BEFORE_BYTES).length;
  return el("pre", { class: "hex body", tabindex: "0", "aria-label": "Bytes of the damaged place" },
    lead > 0 && `${part(0, lead)}\n`, el("mark", {}, part(lead, lead + length)), behind > 0 && `\n${part(lead + length, lead + length + behind)}`);
}
