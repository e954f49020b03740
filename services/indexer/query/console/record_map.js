// A drawing of a part of the log in lines of equal length, with the records in the colours of their topics.

import { urlOf } from "./api.js";
import { copyButtons } from "./copying.js";
import { el, svg, table, to } from "./dom.js";
import { brief, count, size } from "./text.js";
import { moment, time } from "./times.js";

const LINES = 16; // approximate number of lines
const LINE_HEIGHT = 22;
const WIDTH = 1000;
const COLOURS = 8;
const SHADES = 4; // shades of a topic's colour, for its queues
const MARKS = ["written", "flushed", "committed", "indexed"];

/** Return the page's elements for an answer of /v1/log/records. ledger: damage from its start on; from: the request's. */
export function recordMap(answer, { marks, ledger, from }) {
  const damaged = new Set(ledger.map((one) => String(one.physical_offset)));
  const records = answer.records.map((one) => ({ ...one, isDamaged: damaged.has(String(one.physical_offset)) || (one.kind !== "GAP" && one.fault !== null) }));
  if (!records.length) return [el("p", { class: "muted" }, "There are no committed records from here on.")];
  const begin = BigInt(records[0].physical_offset);
  const end = BigInt(answer.next_from);
  const colours = coloursOf(records);
  const description = el("p", { class: "description", role: "status" }, "Point at a record, or go to it with Tab and the arrow keys.");
  const back = begin - (end - begin);
  return [
    el("div", { class: "resultbar" },
      el("h2", {}, `From ${count(begin)} to ${count(end)}`),
      el("span", { class: "steps" },
        begin > 0n && el("a", { class: "button", href: to("/log", { from: back > 0n ? back : 0 }) }, "Earlier"),
        end < BigInt(answer.committed_offset) && el("a", { class: "button", href: to("/log", { from: end }) }, "Later"),
        el("a", { class: "button", href: to("/log") }, "End of the log")),
      copyButtons(urlOf("v1/log/records", { from, max: answer.max }))),
    el("div", { class: "legend" },
      [...colours].map(([topic, colour]) => swatch(`t${colour}`, brief(topic, 60))),
      swatch("blank", "blank end"), swatch("gap", "rest of a record"), swatch("damaged", "damage"), el("span", {}, "shades: queues")),
    draw(records, { begin, end, colours, marks, description }),
    description,
    el("details", {}, el("summary", {}, "As a table"), recordTable(records)),
  ];
}

function swatch(kind, text) {
  return el("span", {}, el("i", { class: `swatch ${kind}` }), text);
}

/** Return topic → number of its colour, by first appearance; topics beyond the eighth share the last colour. */
function coloursOf(records) {
  const colours = new Map();
  for (const { topic } of records) {
    if (topic !== null && !colours.has(topic)) colours.set(topic, Math.min(colours.size, COLOURS - 1));
  }
  return colours;
}

function draw(records, { begin, end, colours, marks, description }) {
  const length = Number(end - begin);
  const perLine = 2 ** Math.max(6, Math.ceil(Math.log2(length / LINES)));
  const lines = Math.ceil(length / perLine);
  const blocks = records.map((record) => blockOf(record, { begin, perLine, colours, description }));
  const name = `${records.length} pieces of the log, ${size(perLine)} a line`;
  const viewBox = `0 0 ${WIDTH} ${lines * LINE_HEIGHT}`;
  const drawing = svg("svg", { class: "records", viewBox, preserveAspectRatio: "none", role: "group", "aria-label": name },
    blocks, MARKS.map((name) => markOf(name, marks[name], { begin, end, perLine })));
  blocks[0].setAttribute("tabindex", "0");
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const at = Math.min(blocks.length - 1, Math.max(0, blocks.indexOf(document.activeElement) + step));
    for (const block of blocks) block.setAttribute("tabindex", "-1");
    blocks[at].setAttribute("tabindex", "0");
    blocks[at].focus();
  });
  return drawing;
}

function blockOf(record, { begin, perLine, colours, description }) {
  const start = Number(BigInt(record.physical_offset) - begin);
  const isRecord = record.topic !== null;
  const kind = record.isDamaged ? "damaged" : record.kind === "BLANK" ? "blank" : isRecord ? `t${colours.get(record.topic)} q${record.queue_id % SHADES}` : "gap";
  const rects = linesOf(start, record.size, perLine).map(([line, a, b]) => svg("rect", {
    class: kind,
    x: (WIDTH * a) / perLine, y: line * LINE_HEIGHT, width: Math.max(0.5, (WIDTH * (b - a)) / perLine - 1), height: LINE_HEIGHT - 3,
  }));
  const text = nameOf(record);
  const describe = () => (description.textContent = text);
  const attributes = { "aria-label": text, tabindex: "-1", on: { mouseenter: describe, focus: describe } };
  return isRecord
    ? svg("a", { ...attributes, href: to("/messages", { by: "place", value: record.physical_offset }) }, rects)
    : svg("g", { ...attributes, role: "img" }, rects);
}

/** Return [line, from, to] for each line that a piece covers. */
function linesOf(start, length, perLine) {
  const parts = [];
  for (let at = start; at < start + length; ) {
    const line = Math.floor(at / perLine);
    const until = Math.min(start + length, (line + 1) * perLine);
    parts.push([line, at - line * perLine, until - line * perLine]);
    at = until;
  }
  return parts;
}

function markOf(name, offset, { begin, end, perLine }) {
  if (offset === null || BigInt(offset) <= begin || BigInt(offset) > end) return null;
  const at = Number(BigInt(offset) - begin);
  const line = Math.floor((at - 1) / perLine);
  const x = (WIDTH * (at - line * perLine)) / perLine;
  return svg("rect", { class: name, x: Math.min(WIDTH - 3, x - 1), y: line * LINE_HEIGHT - 1 + MARKS.indexOf(name) * 5, width: 3, height: 5 });
}

function nameOf(record) {
  const place = `${count(record.physical_offset)}, ${count(record.size)} B`;
  if (record.kind === "BLANK") return `${place}: blank end of the file`;
  if (record.kind === "GAP") return `${place}: ${record.isDamaged ? `damage, ${record.fault}` : "the rest of a record, or bytes without a record"}`;
  const inner = record.message_count > 1 ? `, ${count(record.message_count)} messages` : "";
  const fault = record.fault === null ? "" : `, damaged: ${record.fault}`;
  return `${place}: ${brief(record.topic, 60)}/${record.queue_id} at ${count(record.queue_offset)}${inner}, ${time(record.store_timestamp_ms)}${fault}`;
}

function recordTable(records) {
  const heads = [["Place", "number"], ["Size", "number"], "What", ["Queue offset", "number wide"], ["Stored", "wide"]];
  return table("Pieces of the log", heads, records.map((record) => {
    const place = count(record.physical_offset);
    const link = () => el("a", { href: to("/messages", { by: "place", value: record.physical_offset }) }, place);
    return [record.topic === null ? place : link(), count(record.size), whatOf(record), count(record.queue_offset), moment(record.store_timestamp_ms)];
  }));
}

function whatOf(record) {
  if (record.kind === "BLANK") return "blank end";
  if (record.kind === "GAP") return record.isDamaged ? `damage: ${record.fault}` : "no record starts";
  return `${brief(record.topic, 60)}/${record.queue_id}${record.fault === null ? "" : ` (${record.fault})`}`;
}
