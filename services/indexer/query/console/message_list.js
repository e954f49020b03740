// A table of messages. Each row opens to show all facts of its message.

import { path, urlOf } from "./api.js";
import { WITHOUT_TOPIC } from "./asked.js";
import { bodyView, bytesOf, pairsOf, textOf } from "./body.js";
import { copy, copyButtons, say } from "./copying.js";
import { changed, el, facts, table, to } from "./dom.js";
import { brief, count, size, visible } from "./text.js";
import { moment } from "./times.js";

const COLUMNS = 6;
const PREVIEW_BYTES = 400;

/** A list to which messages are added. open: physical offset, as text, of the message to open. */
export class MessageList {
  constructor(topic, { open = null, empty = "No messages here." } = {}) {
    this.topic = topic;
    this.open = open;
    this.rows = new Map(); // of each message's first row: the message, and whether it was found beyond the list
    this.isShown = () => true;
    this.whenAdded = () => {};
    this.element = table("Messages", [["Queue / offset", "number"], ["Stored", "wide"], ["Tag", "wide"], ["Keys", "wide"], ["Size", "number wide"], "Body"], [], { empty });
    this.element.classList.add("messages");
    this.body = this.element.querySelector("tbody");
    this.hint = this.body.firstChild;
    this.body.addEventListener("keydown", (event) => this.#walk(event));
  }

  /** Number of messages of the list, without those that a search found beyond it. */
  get length() {
    return this.#count(() => true);
  }

  /** Number of those that pass the filter. */
  get shown() {
    return this.#count((row) => !row.hidden);
  }

  #count(test) {
    let sum = 0;
    for (const [row, { isFurther }] of this.rows) sum += !isFurther && test(row) ? 1 : 0;
    return sum;
  }

  /** Call *whenAdded* after each addition of messages. */
  watch(whenAdded) {
    this.whenAdded = whenAdded;
  }

  /** Show only the messages that pass the test, also of those that are added later. */
  filter(isShown) {
    this.isShown = isShown;
    for (const [row, { message }] of this.rows) this.#adapt(row, message);
  }

  #adapt(row, message) {
    row.hidden = !this.isShown(message);
    row.nextSibling.hidden = row.hidden || row.querySelector(".opener").getAttribute("aria-expanded") === "false";
  }

  /** Remove the messages that a search found beyond the list. */
  dropFurther() {
    for (const [row, { isFurther }] of this.rows) if (isFurther) this.#remove(row);
    if (!this.rows.size) this.body.append(this.hint);
  }

  #remove(row) {
    row.nextSibling.remove();
    row.remove();
    this.rows.delete(row);
  }

  /** Add messages below the others, or above them if *newestFirst*; keep at most *most*. isFurther: beyond the list. */
  add(messages, { newestFirst = false, most = Infinity, isFurther = false } = {}) {
    if (messages.length) this.hint.remove();
    for (const message of messages) {
      const rows = this.#rowsOf(message);
      this.rows.set(rows[0], { message, isFurther });
      if (newestFirst) this.body.prepend(...rows);
      else this.body.append(...rows);
      if (String(message.physical_offset) === this.open) {
        this.open = null; // the first one of an inner batch
        rows[0].querySelector(".opener").click();
      }
      this.#adapt(rows[0], message);
    }
    while (this.rows.size > most) this.#remove(this.body.lastElementChild.previousSibling);
    this.whenAdded();
  }

  #rowsOf(message) {
    const bytes = bytesOf(message.body);
    const detail = el("tr", { class: "detail", hidden: true }, el("td", { colspan: COLUMNS }));
    const opener = el("button", { type: "button", class: "opener", "aria-expanded": "false" }, `${message.queue_id} / ${count(message.queue_offset)}`);
    const row = el("tr", { class: "opens" },
      el("td", { class: "number" }, opener),
      el("td", { class: "time wide" }, moment(message.store_timestamp_ms)),
      el("td", { class: "wide" }, message.tag === null ? "" : tagLink(this.topic, message.tag)),
      el("td", { class: "wide" }, brief(message.keys.join(" "), 60)),
      el("td", { class: "number wide" }, size(bytes.length)),
      el("td", { class: "preview" }, preview(bytes)));
    row.addEventListener("click", (event) => {
      if (event.target.closest("a")) return;
      if (getSelection().isCollapsed || event.target === opener) this.#turn(message, bytes, opener, detail);
    });
    return [row, detail];
  }

  #turn(message, bytes, opener, detail) {
    const opens = detail.hidden;
    opener.setAttribute("aria-expanded", String(opens));
    detail.hidden = !opens;
    detail.firstChild.replaceChildren(...(opens ? [detailOf(this.topic, message, bytes)] : []));
    if (!location.hash.startsWith("#/messages")) return;
    history.replaceState(null, "", changed(location.hash, { open: opens ? message.physical_offset : null }));
  }

  /** Move between rows with the arrow keys. */
  #walk(event) {
    if (!event.target.classList.contains("opener") || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    const openers = [...this.body.querySelectorAll("tr:not([hidden]) .opener")];
    openers[openers.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  }
}

function preview(bytes) {
  const start = bytes.subarray(0, PREVIEW_BYTES);
  const text = textOf(bytes.length > PREVIEW_BYTES ? wholeCharacters(start) : start);
  return text === null ? pairsOf(bytes.subarray(0, 24)) : brief(text, 200);
}

/** Return *bytes* without an incomplete UTF-8 character at the end. */
function wholeCharacters(bytes) {
  let end = bytes.length;
  while (end > bytes.length - 4 && (bytes[end - 1] & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, bytes[end - 1] >= 0xc0 ? end - 1 : end);
}

function detailOf(topic, message, bytes) {
  const queue = path("topics", topic, "queues", message.queue_id);
  const pulled = urlOf(`${queue}/messages`, { offset: message.queue_offset, max_messages: 1, body_encoding: "auto" });
  const properties = Object.entries(message.properties);
  return el("div", { class: "message" },
    el("div", { class: "actions" }, copyButtons(pulled),
      el("button", { type: "button", class: "quiet", on: { click: () => copyLink(message) } }, "Copy link"),
      el("a", { href: to("/log", { from: message.physical_offset }) }, "Show in the log")),
    facts([
      ["Message id", visible(message.message_id ?? "–")],
      ["Offset message id", visible(message.offset_msg_id ?? "–")],
      ["Place", count(message.physical_offset)],
      ["Stored", moment(message.store_timestamp_ms)],
      ["Born", moment(message.born_timestamp_ms)],
      ["Tag", message.tag === null ? "–" : tagLink(topic, message.tag)],
      ["Keys", message.keys.length ? message.keys.map((key) => keyLink(topic, key)) : "–"],
      ["From", visible(message.born_host)],
      ["Size", `${count(bytes.length)} B`],
      ["Body CRC", count(message.body_crc)],
      ["Flags", `${message.flag}, system ${message.sys_flag}`],
      ["Delivered again", count(message.reconsume_times)],
    ]),
    properties.length > 0 && table("Properties", ["Property", "Value"], properties.map(([name, value]) => [visible(name), visible(value)])),
    bodyView(bytes));
}

/** Return a link to the messages of this tag: those of the page, or of the topic if the page has a single message. */
function tagLink(topic, tag) {
  const by = new URLSearchParams(location.hash.split("?")[1]).get("by");
  const href = WITHOUT_TOPIC.has(by) ? to("/messages", { topic, tag }) : changed(location.hash, { tag, open: "" });
  return el("a", { class: "chip", href, title: "Show only this tag" }, brief(tag, 40));
}

function keyLink(topic, key) {
  return el("a", { class: "key", href: to("/messages", { topic, by: "key", value: key }) }, visible(key));
}

async function copyLink(message) {
  const link = new URL(to("/messages", { by: "place", value: message.physical_offset }), location.href);
  say((await copy(link.href)) ? "Link copied" : "The browser does not allow the console to copy");
}
