// The page Log: files, records, and the written, flushed, committed and indexed positions, drawn to scale.

import { get, urlOf } from "./api.js";
import { copyButtons } from "./copying.js";
import { el, svg, table, to } from "./dom.js";
import { recordMap } from "./record_map.js";
import { count, size } from "./text.js";
import { moment, time } from "./times.js";

const FILES = 60; // files on one drawing
const RECORDS = 400;
const WIDTH = 1000;
const FILE_HEIGHT = 30;
const LANES = [["written", "Written"], ["flushed", "Flushed"], ["committed", "Committed"], ["indexed", "Indexed"]];

export async function log(page, parameters, { signal, poll }) {
  const from = parameters.get("from") ?? "";
  const drawing = el("section", { class: "card" });
  const records = el("section");
  page.append(el("header", { class: "head" }, el("h1", {}, "Log"), copyButtons(urlOf("v1/log"))), drawing, records);
  let drawn = "";
  const look = async () => {
    const answer = await lastFiles(parameters.get("files"), signal);
    const text = JSON.stringify(answer, (_, value) => (typeof value === "bigint" ? String(value) : value));
    if (text === drawn || drawing.contains(document.activeElement)) return answer;
    drawn = text;
    const wasOpen = drawing.querySelector("details")?.open;
    drawing.replaceChildren(...filesView(answer, from));
    if (wasOpen) drawing.querySelector("details").open = true;
    return answer;
  };
  const first = await look();
  poll(look, 2000); // before the records: a user without the right to see records may still see files
  if (first.files.length) {
    const start = from === "" ? tailOf(first) : from;
    const answer = await get("v1/log/records", { from: start, max: RECORDS }, signal);
    const ledger = await get("v1/corruptions", { after: BigInt(answer.records[0]?.physical_offset ?? 0) - 1n }, signal);
    records.append(...recordMap(answer, { marks: marksOf(first), ledger: ledger.corruptions, from: start }));
  }
}

/** Return the requested page of files, by default the last one. */
async function lastFiles(asked, signal) {
  if (asked !== null) return get("v1/log", { limit: FILES, from: asked }, signal);
  const one = await get("v1/log", { limit: 1 }, signal);
  const start = BigInt(one.min_physical_offset) + BigInt(Math.max(0, one.file_count - FILES)) * BigInt(one.file_size_bytes);
  return get("v1/log", { limit: FILES, from: start }, signal);
}

/** Return the default start of the records: 64 KiB before the end, but not before the last file. */
function tailOf(answer) {
  const end = BigInt(answer.committed_offset);
  const files = answer.files.map((file) => BigInt(file.start)).filter((start) => start < end);
  const start = files.at(-1) ?? BigInt(answer.min_physical_offset);
  const near = end - 65_536n;
  return near > start ? near : start;
}

function marksOf(answer) {
  return { written: answer.written_offset, flushed: answer.flushed_offset, committed: answer.committed_offset, indexed: answer.watermark.physical_offset };
}

function filesView(answer, from) {
  if (!answer.files.length) return [el("p", { class: "muted" }, "The log has no files yet: the first append creates one.")];
  const marks = marksOf(answer);
  const earlier = BigInt(answer.files[0].start) > BigInt(answer.min_physical_offset);
  const back = BigInt(answer.files[0].start) - BigInt(FILES) * BigInt(answer.file_size_bytes);
  return [
    el("div", { class: "resultbar" },
      el("span", {}, `${count(answer.file_count)} files of ${size(answer.file_size_bytes)}`),
      el("span", { class: "steps" },
        earlier && el("a", { class: "button", href: to("/log", { files: back > 0n ? back : 0 }) }, "Earlier files"),
        answer.next_from !== null && el("a", { class: "button", href: to("/log", { files: answer.next_from }) }, "Later files"))),
    el("div", { class: "legend" }, [["data", "records"], ["blank", "blank end"], ["unwritten", "not written yet"]].map(([kind, text]) =>
      el("span", {}, el("i", { class: `swatch ${kind}` }), text))),
    el("div", { class: "scale" }, drawFiles(answer, marks, from)),
    el("details", {}, el("summary", {}, "As a table"), filesTable(answer, marks)),
  ];
}

/** Draw the files in a row, and below them a bar for each mark, at the same scale. */
function drawFiles(answer, marks, from) {
  const begin = BigInt(answer.files[0].start);
  const fileSize = BigInt(answer.file_size_bytes);
  const end = BigInt(answer.files.at(-1).start) + fileSize;
  const x = (offset) => {
    const within = BigInt(offset) < begin ? begin : BigInt(offset) > end ? end : BigInt(offset);
    return (WIDTH * Number(within - begin)) / Number(end - begin);
  };
  const drawing = svg("svg", { class: "files", viewBox: `0 0 ${WIDTH} ${FILE_HEIGHT}`, preserveAspectRatio: "none", role: "group", "aria-label": `Files from ${count(begin)} to ${count(end)}` },
    answer.files.map((file) => drawFile(file, fileSize, { x, written: BigInt(marks.written), from })));
  const lanes = LANES.map(([name, text]) => el("div", { class: "lane-row" },
    el("span", {}, el("i", { class: `swatch ${name}` }), text),
    svg("svg", { viewBox: `0 0 ${WIDTH} 1`, preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "lane", width: WIDTH, height: 1 }),
      marks[name] !== null && svg("rect", { class: name, width: x(marks[name]), height: 1 })),
    el("span", {}, count(marks[name]))));
  return [drawing, lanes];
}

function drawFile(file, fileSize, { x, written, from }) {
  const start = BigInt(file.start);
  const end = start + fileSize;
  const behind = file.blank_at === null ? written : BigInt(file.blank_at);
  const [a, b, c] = [x(start), x(behind < start ? start : behind > end ? end : behind), x(end)];
  const text = `File ${count(start)}, begun ${time(file.first_store_ms)}${file.blank_at === null ? "" : `, blank from ${count(file.blank_at)}`}`;
  const isOpen = /^\d{1,19}$/.test(from) && BigInt(from) >= start && BigInt(from) < end;
  const part = (kind, left, width) => svg("rect", { class: kind, x: left + 0.5, y: 0.5, width: Math.max(0, width), height: FILE_HEIGHT - 1 });
  return svg("a", { href: to("/log", { from: start }), "aria-label": text, class: isOpen ? "open" : null },
    svg("title", {}, text),
    part("unwritten", a, c - a - 1),
    part("data", a, b - a - 1),
    file.blank_at !== null && part("blank", Math.min(b, c - 3), Math.max(2, c - b - 1)));
}

function filesTable(answer, marks) {
  const fileSize = BigInt(answer.file_size_bytes);
  const state = (file) => {
    const start = BigInt(file.start);
    if (BigInt(marks.committed) >= start + fileSize) return "full";
    return BigInt(marks.written) > start ? `${size(BigInt(marks.written) - start)} written` : "empty";
  };
  return table("Files of the log", [["Begins at", "number"], ["First record stored", "wide"], ["Blank from", "number"], ["Blank", "number"], "State"],
    answer.files.map((file) => [
      el("a", { href: to("/log", { from: file.start }) }, count(file.start)), moment(file.first_store_ms), count(file.blank_at),
      file.blank_at === null ? "–" : size(BigInt(file.start) + fileSize - BigInt(file.blank_at)), state(file),
    ]));
}
