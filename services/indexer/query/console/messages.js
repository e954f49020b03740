// The page Messages: messages by offset, time, key, id and physical offset, and the live tail.

import { Problem, get, path, urlOf } from "./api.js";
import { copyButtons } from "./copying.js";
import { choice, el, field, to } from "./dom.js";
import { failure } from "./failures.js";
import { MessageList } from "./message_list.js";
import { tail } from "./tail.js";
import { brief, count, offsets, plainNumber } from "./text.js";
import { fieldOfTime, timeOfField, zone } from "./times.js";

const WAYS = [["offset", "Offset"], ["time", "Time"], ["key", "Key"], ["unique", "Unique key"], ["tail", "Live tail"], ["id", "Message id"], ["place", "Place in the log"]];
const SIZES = [20, 50, 100];
const OF_ALL_QUEUES = new Set(["time", "key", "unique", "tail"]);
const WITHOUT_TOPIC = new Set(["id", "place"]);
const HINTS = { offset: "newest, or a number", time: "", key: "one of a message's keys", unique: "id that the client made", id: "32 or 56 hex digits", place: "physical offset" };

export async function messages(page, parameters, life) {
  const asked = readAsked(parameters);
  const result = el("div");
  page.append(el("h1", {}, asked.topic ? `Messages of ${brief(asked.topic)}` : "Messages"));
  const needsTopic = !WITHOUT_TOPIC.has(asked.by);
  let topic = null;
  let problem = null;
  if (needsTopic && asked.topic) {
    try {
      topic = await get(path("topics", asked.topic), {}, life.signal);
      if (asked.queue === "" && !OF_ALL_QUEUES.has(asked.by)) asked.queue = String(firstWithMessages(topic));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      problem = error;
    }
  }
  page.append(await form(asked, topic, life.signal), result);
  if (problem) result.append(failure(problem));
  else if (needsTopic && !asked.topic) result.append(el("p", { class: "muted" }, "Choose a topic to see its messages."));
  else if (asked.by === "tail") tail(result, asked, topic, life);
  else await look(result, asked, topic, life.signal);
}

function readAsked(parameters) {
  const text = (name) => parameters.get(name) ?? "";
  const by = WAYS.some(([way]) => way === text("by")) ? text("by") : "offset";
  const size = SIZES.includes(Number(text("size"))) ? Number(text("size")) : SIZES[0];
  return { topic: text("topic").trim(), queue: text("queue"), by, value: text("value").trim(), tag: text("tag"), cursor: text("cursor"), open: parameters.get("open"), size };
}

function firstWithMessages({ queues }) {
  return (queues.find((queue) => queue.max_offset > queue.min_offset) ?? queues[0])?.queue_id ?? 0;
}

// -- the form -------------------------------------------------------------------------------------------------------

async function form(asked, topic, signal) {
  const names = el("datalist", { id: "topic-names" });
  get("v1/topics", {}, signal).then(({ topics }) => names.append(...topics.slice(0, 1000).map((one) => el("option", { value: one.topic }))), () => {});
  const topicInput = el("input", { name: "topic", list: "topic-names", value: asked.topic, spellcheck: "false", autocomplete: "off" });
  const way = choice("by", WAYS, asked.by);
  const queue = choice("queue", [["", "all"], ...(topic?.queues ?? []).map(({ queue_id }) => [queue_id, queue_id])], asked.queue);
  const value = el("input", { name: "value", spellcheck: "false" });
  const tag = el("input", { name: "tag", value: asked.tag, spellcheck: "false" });
  const pageSize = choice("size", SIZES.map((one) => [one, one]), asked.size);
  const fields = { topic: field("Topic", topicInput), queue: field("Queue", queue), value: field("Value", value), tag: field("Tag", tag) };

  const adapt = () => {
    const by = way.value;
    fields.topic.hidden = fields.queue.hidden = WITHOUT_TOPIC.has(by);
    fields.value.hidden = by === "tail";
    fields.value.firstChild.textContent = by === "time" ? `Time (${zone.name})` : WAYS.find(([one]) => one === by)[1];
    value.type = by === "time" ? "datetime-local" : "text";
    if (by === "time") value.step = "0.001";
    value.placeholder = HINTS[by] ?? "";
    queue.options[0].disabled = by === "offset";
    fields.tag.hidden = !["offset", "time", "tail"].includes(by);
    tag.disabled = queue.value === "";
    tag.placeholder = tag.disabled ? "of one queue" : "";
  };
  way.addEventListener("change", () => {
    value.value = "";
    adapt();
  });
  queue.addEventListener("change", adapt);
  adapt();
  value.value = asked.by === "time" ? fieldOfTime(asked.value) : asked.value;
  const submit = (event) => {
    event.preventDefault();
    const by = way.value;
    const text = by === "time" && value.value ? String(timeOfField(value.value)) : typedValue(by, value.value.trim());
    const of = WITHOUT_TOPIC.has(by) ? {} : { topic: topicInput.value.trim(), queue: topicInput.value.trim() === asked.topic ? queue.value : "" };
    const hash = to("/messages", { ...of, by, value: text, tag: tag.disabled || fields.tag.hidden ? "" : tag.value, size: pageSize.value === String(SIZES[0]) ? "" : pageSize.value });
    if (hash === location.hash) dispatchEvent(new Event("hashchange"));
    else location.hash = hash;
  };
  return el("form", { class: "row card", on: { submit } },
    fields.topic, field("Look by", way), fields.queue, fields.value, fields.tag, field("Rows", pageSize),
    el("button", { type: "submit", class: "primary" }, "Show"), names);
}

function typedValue(by, text) {
  return by === "offset" || by === "place" ? plainNumber(text) : text;
}

// -- the results ----------------------------------------------------------------------------------------------------

async function look(result, asked, topic, signal) {
  if (asked.by === "id") return single(result, `v1/messages/${encodeURIComponent(asked.value)}`, asked, signal);
  if (asked.by === "place") return single(result, `v1/messages/at/${encodeURIComponent(asked.value)}`, asked, signal);
  if (asked.by === "offset") return pull(result, asked, startOf(asked, topic), signal);
  if (asked.by === "time" && asked.queue !== "") {
    const found = await get(`${path("topics", asked.topic, "queues", asked.queue)}/offset`, { time: asked.value || "0" }, signal);
    return pull(result, asked, found.offset, signal);
  }
  return search(result, asked, signal);
}

async function single(result, relative, asked, signal) {
  if (!asked.value) {
    result.append(el("p", { class: "muted" }, "Enter the message id or the physical offset."));
    return;
  }
  if (relative.split("/").some((segment) => segment === "." || segment === "..")) throw new Problem(0, "NAME_ILLEGAL", "This is not a message id: expected 32 or 56 hex digits.");
  const query = { body_encoding: "base64" };
  const answer = await get(relative, query, signal);
  const rows = new MessageList(answer.topic, { open: String(answer.messages[0]?.physical_offset) });
  const topic = el("a", { href: to("/topic", { name: answer.topic }) }, brief(answer.topic));
  result.append(bar(el("span", {}, `In queue ${answer.queue_id} of `, topic), copyButtons(urlOf(relative, { body_encoding: "auto" }))), rows.element);
  rows.add(answer.messages.map((message) => ({ ...message, queue_id: answer.queue_id })));
}

/** Return the offset where a pull starts: the requested one, or one whose page ends with the newest message. */
function startOf(asked, topic) {
  if (asked.value !== "") return asked.value;
  const queue = topic.queues.find((one) => String(one.queue_id) === asked.queue);
  if (!queue) return "earliest";
  const start = BigInt(queue.max_offset) - BigInt(asked.size);
  return start > BigInt(queue.min_offset) ? start : queue.min_offset;
}

async function pull(result, asked, offset, signal) {
  const relative = `${path("topics", asked.topic, "queues", asked.queue)}/messages`;
  const query = { offset, max_messages: asked.size, tag: asked.tag };
  const answer = await get(relative, { ...query, body_encoding: "base64" }, signal);
  const rows = new MessageList(asked.topic, { open: asked.open, empty: emptyPull(answer, asked) });
  const at = (value) => to("/messages", { topic: asked.topic, queue: asked.queue, by: "offset", value, tag: asked.tag, size: asked.size === SIZES[0] ? "" : asked.size });
  const requested = BigInt(answer.requested_offset);
  const held = offsets(answer.min_offset, answer.max_offset);
  const older = requested - BigInt(asked.size) > BigInt(answer.min_offset) ? requested - BigInt(asked.size) : answer.min_offset;
  const step = (name, value, there) => (there ? el("a", { class: "button", href: at(value) }, name) : el("span", { class: "button off", "aria-disabled": "true" }, name));
  result.append(
    bar(held === null ? `Queue ${answer.queue_id} is empty` : `Queue ${answer.queue_id} holds ${held}`,
      el("span", { class: "steps" },
        step("First", "earliest", requested > BigInt(answer.min_offset)),
        step("Older", older, requested > BigInt(answer.min_offset)),
        step("Newer", answer.next_offset, BigInt(answer.next_offset) < BigInt(answer.max_offset)),
        step("Newest", "", BigInt(answer.next_offset) < BigInt(answer.max_offset))),
      copyButtons(urlOf(relative, { ...query, body_encoding: "auto" }))),
    rows.element, skipped(answer));
  rows.add(answer.messages.map((message) => ({ ...message, queue_id: answer.queue_id })));
}

function emptyPull(answer, asked) {
  if (answer.status === "NO_MESSAGE_IN_QUEUE") return "This queue is empty. Choose another one above.";
  if (answer.status === "NO_MATCHED_MESSAGE") return "No message with this tag on this page. Continue with “Newer”.";
  return asked.tag ? "No message with this tag from here on." : "No messages from here on. This is the queue's end.";
}

async function search(result, asked, signal) {
  const relative = `${path("topics", asked.topic)}/messages`;
  if (asked.by !== "time" && !asked.value) {
    result.append(el("p", { class: "muted" }, "Enter a key."));
    return;
  }
  const of = { key: { key: asked.value }, unique: { unique_key: asked.value }, time: { from: asked.value || "0" } };
  const query = { ...of[asked.by], limit: asked.size, cursor: asked.cursor };
  const answer = await get(relative, { ...query, body_encoding: "base64" }, signal);
  const rows = new MessageList(asked.topic, { open: asked.open, empty: answer.next_cursor ? "No message on this page. Continue with “Next page”." : "No message was found." });
  const { topic, by, value } = asked;
  result.append(
    bar(by === "time" ? "All queues, in the order of the log" : "Messages in the key index, in the order of the log",
      answer.next_cursor && el("a", { class: "button", href: to("/messages", { topic, by, value, size: asked.size, cursor: answer.next_cursor }) }, "Next page"),
      copyButtons(urlOf(relative, { ...query, body_encoding: "auto" }))),
    rows.element, skipped(answer));
  rows.add(answer.messages);
}

function bar(...parts) {
  return el("div", { class: "resultbar" }, parts);
}

function skipped({ skipped: damaged }) {
  return damaged?.length ? el("p", { class: "warn" }, `${count(damaged.length)} damaged records were left out: see `, el("a", { href: "#/damage" }, "Damage"), ".") : "";
}
