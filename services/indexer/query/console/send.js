// The form that sends a message to a topic, for callers with the right to do so.

import { Problem, path, request, writeExactly } from "./api.js";
import { pairsOf } from "./body.js";
import { choice, el, field, to } from "./dom.js";
import { failure } from "./failures.js";
import { brief, count, span } from "./text.js";
import { moment } from "./times.js";

const WRITABLE = 2; // bit of a topic's permission
const DELAYS_S = [1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200]; // RocketMQ's levels 1 to 18
const ENCODINGS = [["utf8", "Text"], ["json", "JSON"], ["base64", "Base64"]];

/** Return the form for *topic*, an answer of GET /v1/topics/{topic}; "" if the caller must not send to it. */
export function sendForm(topic) {
  if (!topic.caller_actions.includes("Pub") || !(topic.permission & WRITABLE)) return "";
  const body = el("textarea", { name: "body", required: true, rows: "4", spellcheck: "false" });
  const encoding = choice("encoding", ENCODINGS, "utf8");
  const keys = el("input", { name: "keys", placeholder: "separated by spaces", spellcheck: "false" });
  const tag = el("input", { name: "send-tag", spellcheck: "false" });
  const delay = choice("delay", [["", "none"], ...DELAYS_S.map((seconds, i) => [i + 1, `${i + 1}: ${span(seconds * 1000)}`])], "");
  const properties = el("textarea", { name: "properties", rows: "2", placeholder: "name=value, one in each line", spellcheck: "false" });
  const outcome = el("div", { role: "status" });
  const send = el("button", { type: "submit", class: "primary" }, "Send");
  let attempt = null; // a request whose outcome is unknown: if it is sent again, the message is stored once
  const submit = async (event) => {
    event.preventDefault();
    send.disabled = true;
    try {
      const message = { ...bodyOf(body.value, encoding.value), tag: tag.value || null, keys: keys.value.split(" ").filter(Boolean), properties: propertiesOf(properties.value) };
      if (delay.value) message.properties.DELAY = delay.value;
      const content = { messages: [message] };
      const text = writeExactly(content);
      if (attempt?.text !== text) attempt = { text, key: newKey() };
      const stored = await request("POST", `${path("topics", topic.topic)}/messages`, { body: content, headers: { "Idempotency-Key": attempt.key } });
      attempt = null;
      outcome.replaceChildren(...positionOf(stored));
    } catch (problem) {
      outcome.replaceChildren(failure(problem));
    } finally {
      send.disabled = false;
    }
  };
  return el("details", { class: "card" }, el("summary", {}, `Send a message to ${brief(topic.topic)}`),
    el("form", { class: "send", on: { submit } },
      field("Body", body),
      el("div", { class: "row" }, field("Body is", encoding), field("Keys", keys), field("Tag of the message", tag), field("Delay level", delay)),
      field("Properties", properties),
      el("div", { class: "actions" }, send), outcome));
}

/** Return the body as typed, for a request. JSON is checked here, and sent as the text that it is. */
function bodyOf(text, encoding) {
  if (encoding === "base64") return { body: text.replaceAll(/\s/g, ""), body_encoding: "base64" };
  if (encoding === "json") {
    try {
      JSON.parse(text);
    } catch (error) {
      throw new Problem(0, "BODY_ILLEGAL", `The body is not JSON: ${error.message}`);
    }
  }
  return { body: text, body_encoding: "utf8" };
}

function propertiesOf(text) {
  const found = new Map();
  for (const line of text.split("\n").filter((one) => one.trim() !== "")) {
    const [, name, value] = /^\s*([^=]+?)\s*=(.*)$/.exec(line) ?? [];
    if (name === undefined) throw new Problem(0, "PROPERTIES_ILLEGAL", `“${line}” is not a property: write name=value.`);
    if (found.has(name)) throw new Problem(0, "PROPERTIES_ILLEGAL", `The property ${name} is given twice.`);
    found.set(name, value);
  }
  return Object.fromEntries(found);
}

function newKey() {
  return pairsOf(crypto.getRandomValues(new Uint8Array(16))).replaceAll(" ", "");
}

function positionOf({ queue_id, queue_offset, physical_offset, status, duplicate, deliver_timestamp_ms: due }) {
  const place = el("a", { href: to("/messages", { by: "place", value: physical_offset }) }, due === null ? `queue ${queue_id}, offset ${count(queue_offset)}` : `at ${count(physical_offset)} in the log`);
  return [
    duplicate ? "Stored already: " : "Stored: ", place,
    due === null ? "" : el("span", {}, ", to be delivered ", moment(due)),
    status === "PUT_OK" ? "" : ". The flush to disk is not confirmed yet.",
  ];
}
