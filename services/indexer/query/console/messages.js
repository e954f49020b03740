// The page Messages: the form that says which messages, and the messages.

import { Problem, get, path } from "./api.js";
import { SIZES, WAYS, WITHOUT_TOPIC, linkTo, readAsked } from "./asked.js";
import { choice, el, field } from "./dom.js";
import { failure } from "./failures.js";
import { pull, search, single } from "./lookups.js";
import { newest } from "./newest.js";
import { sendForm } from "./send.js";
import { tail } from "./tail.js";
import { brief, plainNumber } from "./text.js";
import { fieldOfTime, timeOfField, zone } from "./times.js";

const WITHOUT_VALUE = new Set(["newest", "tail"]);
const WITH_TAG = new Set(["newest", "offset", "time", "tail"]);
const HINTS = { offset: "a number, earliest or latest", time: "", key: "one of a message's keys", unique: "id that the client made", id: "32 or 56 hex digits", place: "physical offset" };

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
      if (asked.queue === "" && asked.by === "offset") asked.queue = String(firstWithMessages(topic));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      problem = error;
    }
  }
  page.append(form(asked, topic, life.signal), result, topic === null ? "" : sendForm(topic));
  if (problem) result.append(failure(problem));
  else if (needsTopic && !asked.topic) result.append(el("p", { class: "muted" }, "Choose a topic to see its messages."));
  else await look(result, asked, topic, life);
}

function typedValue(by, text) {
  return by === "offset" || by === "place" ? plainNumber(text) : text;
}

function firstWithMessages({ queues }) {
  return (queues.find((queue) => queue.max_offset > queue.min_offset) ?? queues[0])?.queue_id ?? 0;
}

async function look(result, asked, topic, life) {
  const { signal } = life;
  if (asked.by === "newest") return newest(result, asked, topic, signal);
  if (asked.by === "tail") return tail(result, asked, topic, life);
  if (asked.by === "id") return single(result, `v1/messages/${encodeURIComponent(asked.value)}`, asked, signal);
  if (asked.by === "place") return single(result, `v1/messages/at/${encodeURIComponent(asked.value)}`, asked, signal);
  if (asked.by === "offset") return pull(result, asked, asked.value, signal);
  if (asked.by === "time" && asked.queue !== "") {
    const found = await get(`${path("topics", asked.topic, "queues", asked.queue)}/offset`, { time: asked.value || "0" }, signal);
    return pull(result, asked, found.offset, signal);
  }
  return search(result, asked, signal);
}

// -- the form -------------------------------------------------------------------------------------------------------

function form(asked, topic, signal) {
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
    fields.value.hidden = WITHOUT_VALUE.has(by);
    fields.value.firstChild.textContent = by === "time" ? `Time (${zone.name})` : WAYS.find(([one]) => one === by)[1];
    value.type = by === "time" ? "datetime-local" : "text";
    if (by === "time") value.step = "0.001";
    value.placeholder = HINTS[by] ?? "";
    queue.options[0].disabled = by === "offset";
    fields.tag.hidden = !WITH_TAG.has(by);
  };
  way.addEventListener("change", () => {
    value.value = "";
    adapt();
  });
  adapt();
  value.value = asked.by === "time" ? fieldOfTime(asked.value) : asked.value;
  const submit = (event) => {
    event.preventDefault();
    const by = way.value;
    const text = by === "time" && value.value ? String(timeOfField(value.value)) : typedValue(by, value.value.trim());
    const name = topicInput.value.trim();
    const hash = linkTo({
      ...asked, by, value: text, size: Number(pageSize.value),
      topic: WITHOUT_TOPIC.has(by) ? "" : name,
      queue: WITHOUT_TOPIC.has(by) || name !== asked.topic ? "" : queue.value,
      tag: WITH_TAG.has(by) ? tag.value : "",
    });
    if (hash === location.hash) dispatchEvent(new Event("hashchange"));
    else location.hash = hash;
  };
  return el("form", { class: "row card", on: { submit } },
    fields.topic, field("Look by", way), fields.queue, fields.value, fields.tag, field("Rows", pageSize),
    el("button", { type: "submit", class: "primary" }, "Show"), names);
}
