// The page Topics: all topics, and a form that creates one.

import { get, path, request } from "./api.js";
import { choice, el, field, table, to } from "./dom.js";
import { failure } from "./failures.js";
import { brief, count } from "./text.js";

const SHOWN = 200; // topics shown at once; the filter finds the others
const COUNTED = 50; // topics whose messages are counted

export async function topics(page, parameters, { signal }) {
  const filter = el("input", { type: "search", name: "filter", value: parameters.get("filter") ?? "", placeholder: "Part of a name", "aria-label": "Filter topics" });
  const list = el("div");
  page.append(el("header", { class: "head" }, el("h1", {}, "Topics"), filter), list, creation());
  const answer = await get("v1/topics", {}, signal);

  const draw = () => {
    const wanted = answer.topics.filter((one) => one.topic.toLowerCase().includes(filter.value.trim().toLowerCase()));
    const cells = wanted.slice(0, SHOWN).map((one) => ({ topic: one.topic, messages: el("span", { class: "muted" }, "…"), one }));
    list.replaceChildren(
      table("Topics", ["Topic", ["Queues", "number"], ["Messages", "number"], ["Kind", "wide"], ["Permission", "wide"], ""],
        cells.map(({ topic, messages, one }) => [
          el("a", { href: to("/topic", { name: topic }) }, brief(topic)),
          count(one.queue_ids.length), messages, one.queue_type, permission(one.permission),
          el("a", { href: to("/messages", { topic }), "aria-label": `Messages of ${brief(topic)}` }, "Messages"),
        ]),
        { empty: answer.topics.length ? "No topic has this text in its name." : "No topics yet. Create one below, or append a message to one." }),
      el("p", { class: "muted" }, wanted.length > SHOWN ? `The first ${SHOWN} of ${count(wanted.length)}.` : `${count(wanted.length)} of ${count(answer.topics.length)}.`));
    tally(cells, signal);
  };
  filter.addEventListener("input", () => {
    history.replaceState(null, "", to("/topics", { filter: filter.value.trim() }));
    draw();
  });
  draw();
}

/** Request the bounds of the first topics, one after the other. */
async function tally(cells, signal) {
  for (const { messages } of cells.slice(COUNTED)) messages.textContent = "";
  for (const { topic, messages } of cells.slice(0, COUNTED)) {
    if (signal.aborted || !messages.isConnected) return;
    try {
      const { queues } = await get(path("topics", topic), {}, signal);
      messages.textContent = count(total(queues));
      messages.className = "";
    } catch {
      messages.textContent = "–";
    }
  }
}

/** Return the number of messages in these queues. */
export function total(queues) {
  return queues.reduce((sum, queue) => sum + BigInt(queue.max_offset) - BigInt(queue.min_offset), 0n);
}

export function permission(bits) {
  return [bits & 4 && "read", bits & 2 && "write"].filter(Boolean).join(", ") || "none";
}

function creation() {
  const name = el("input", { name: "topic", required: true, maxlength: "127", pattern: "[%\\|a-zA-Z0-9_\\-]+", title: "Letters, digits and % | _ -", spellcheck: "false" });
  const queues = el("input", { name: "queues", type: "number", min: "1", max: "1024", placeholder: "default" });
  const kind = choice("kind", [["SimpleCQ", "Single messages (SimpleCQ)"], ["BatchCQ", "Batches (BatchCQ)"]], "SimpleCQ");
  const outcome = el("div", { role: "status" });
  const submit = async (event) => {
    event.preventDefault();
    const body = { topic: name.value.trim(), ...(queues.value && { queues: Number(queues.value) }) };
    if (kind.value !== "SimpleCQ") body.attributes = { "queue.type": kind.value };
    try {
      const made = await request("POST", "v1/topics", { body });
      outcome.replaceChildren(made.created ? "Created: " : "The topic exists already: ", el("a", { href: to("/topic", { name: made.topic }) }, brief(made.topic)));
    } catch (problem) {
      outcome.replaceChildren(failure(problem));
    }
  };
  return el("details", { class: "card" }, el("summary", {}, "New topic"),
    el("form", { class: "row", on: { submit } },
      field("Name", name), field("Queues", queues), field("Kind of queues", kind),
      el("button", { type: "submit", class: "primary" }, "Create topic"),
      outcome));
}
