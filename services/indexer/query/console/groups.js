// The pages Groups and Group: members, offsets, and the reset of offsets.

import { get, inTurn, path, request, urlOf } from "./api.js";
import { copyButtons } from "./copying.js";
import { choice, el, facts, field, table, to } from "./dom.js";
import { failure } from "./failures.js";
import { brief, count, plainNumber, span, visible } from "./text.js";
import { timeOfField, zone } from "./times.js";
import { total } from "./topics.js";

const COUNTED = 200; // groups whose lag is requested
const REQUESTS_AT_ONCE = 4;

export async function groups(page, _, { signal }) {
  page.append(el("h1", {}, "Groups"));
  const answer = await get("v1/groups", {}, signal);
  const pending = () => el("span", { class: "muted" }, "…");
  const cells = answer.groups.map(({ group: name }) => ({ name, lag: pending(), dead: pending() }));
  const rows = answer.groups.map(({ group: name, topics, queues, members }, i) => [
    el("a", { href: to("/group", { name }) }, brief(name)),
    brief(topics.join(", "), 80), count(queues), count(members), cells[i].lag, cells[i].dead,
  ]);
  page.append(table("Consumer groups", ["Group", ["Topics", "wide"], ["Queues", "number wide"], ["Members", "number"], ["Lag", "number"], ["Dead letters", "number"]], rows,
    { empty: "No groups yet. A group appears when it commits an offset or a member joins." }));
  if (cells.length > COUNTED) page.append(el("p", { class: "muted" }, `Lag and dead letters of the first ${count(COUNTED)} groups. Open another one to see its lag.`));
  countLag(cells, signal);
}

/** Request the lag of each group, and the size of its dead-letter topic if it has one, and show them in its cells. */
async function countLag(cells, signal) {
  const put = async (cell, find) => {
    try {
      cell.replaceChildren(await find());
      cell.className = "";
    } catch {
      cell.textContent = "–"; // no right to see it, or a name that no path can have
    }
  };
  const all = get("v1/topics", {}, signal).then((answer) => new Set(answer.topics.map((one) => one.topic)));
  all.catch(() => {}); // reported by the cells that need it
  const lagOf = async (name) => count((await get(path("groups", name), {}, signal)).lag);
  const deadOf = async (name) => {
    const topic = `%DLQ%${name}`;
    if (!(await all).has(topic)) return "none";
    const { queues } = await get(path("topics", topic), {}, signal);
    return el("a", { href: to("/messages", { topic }), "aria-label": `Dead letters of ${brief(name)}` }, count(total(queues)));
  };
  for (const { lag, dead } of cells.slice(COUNTED)) lag.textContent = dead.textContent = "";
  await inTurn(cells.slice(0, COUNTED), REQUESTS_AT_ONCE, async ({ name, lag, dead }) => {
    if (signal.aborted) return;
    await put(lag, () => lagOf(name));
    await put(dead, () => deadOf(name));
  });
}

export async function group(page, parameters, { signal, poll }) {
  const name = parameters.get("name") ?? "";
  const head = el("header", { class: "head" }, el("h1", {}, brief(name) || "Group"));
  page.append(head);
  const relative = path("groups", name);
  const content = el("div");
  head.append(copyButtons(urlOf(relative)));
  page.append(content);
  const look = async () => {
    const answer = await get(relative, {}, signal);
    if (content.contains(document.activeElement)) return; // new rows would take the focus away
    content.replaceChildren(...groupView(answer, look));
  };
  await look();
  poll(look, 3000);
}

function groupView(answer, look) {
  const reset = (topic, queue) => el("button", {
    type: "button", class: "quiet", "aria-label": queue ? `Reset queue ${queue.queue_id} of ${brief(topic)}` : `Reset ${brief(topic)}`,
    on: { click: () => askReset(answer, topic, queue, look) },
  }, "Reset");
  const topics = [...new Set(answer.queues.map((queue) => queue.topic))];
  return [
    el("section", { class: "card" }, facts([
      ["Lag", count(answer.lag)],
      ["Lost to retention", count(answer.below_min)],
      ["Members", answer.members === null ? "managed by another process" : count(answer.members.length + answer.clients.length)],
      ["Generation", count(answer.generation)],
      ["Strategy", answer.strategy === null ? "–" : visible(answer.strategy)],
    ])),
    table("Members", ["Member", ["Last heartbeat", "number"], "Holds"], (answer.members ?? []).map((member) => [
      brief(member.member_id), `${span(member.heartbeat_age_ms)} ago`,
      brief(member.holds.map((queue) => `${queue.topic}/${queue.queue_id}`).join(", "), 120) || "nothing",
    ]), { empty: "No live members." }),
    ...(answer.clients?.length ? [table("RocketMQ clients", ["Client", ["Last heartbeat", "number"], "Address"],
      answer.clients.map((client) => [brief(client.client_id), `${span(client.heartbeat_age_ms)} ago`, brief(client.address)]))] : []),
    ...topics.map((topic) => el("section", {},
      el("div", { class: "resultbar" }, el("h2", {}, el("a", { href: to("/topic", { name: topic }) }, brief(topic))),
        el("span", {}, "All queues: ", reset(topic, null))),
      table(`Offsets in ${brief(topic)}`, [["Queue", "number"], ["Next offset", "number"], ["End", "number wide"], ["Lag", "number"], ""],
        answer.queues.filter((queue) => queue.topic === topic).map((queue) => [
          count(queue.queue_id),
          el("a", { href: to("/messages", { topic, queue: queue.queue_id, by: "offset", value: queue.offset }) }, count(queue.offset)),
          count(queue.max_offset), count(queue.lag), reset(topic, queue),
        ])))),
  ];
}

// -- reset ----------------------------------------------------------------------------------------------------------

/** Open a dialog in two steps: choose the new position, then confirm the changes. queue: null for all of the topic. */
function askReset(answer, topic, queue, look) {
  const queues = queue ? [queue] : answer.queues.filter((one) => one.topic === topic);
  const places = [["latest", "The end of the queue: skip all messages"], ["earliest", "The oldest message: read all messages again"], ["time", "A time"]];
  if (queue) places.push(["offset", "An offset"]);
  const where = choice("where", places, "latest");
  const at = el("input", { name: "time", type: "datetime-local", step: "1" });
  const offset = el("input", { name: "offset", inputmode: "numeric", pattern: "[0-9]{1,19}|[0-9]{1,3}(,[0-9]{3}){1,6}" });
  const [atField, offsetField] = [field(`Time (${zone.name})`, at), field("Offset", offset)];
  const adapt = () => {
    atField.hidden = !(at.required = where.value === "time");
    offsetField.hidden = !(offset.required = where.value === "offset");
  };
  where.addEventListener("change", adapt);
  adapt();
  const step = el("div", { class: "step" });
  const form = el("form", { method: "dialog" },
    el("h2", {}, `Reset ${visible(answer.group)}`),
    el("p", { class: "muted" }, queue ? `In queue ${queue.queue_id} of ${visible(topic)}.` : `In all ${queues.length} queues of ${visible(topic)} in which the group has an offset.`),
    field("Continue at", where), atField, offsetField, step,
    el("div", { class: "actions" },
      el("button", { type: "button", class: "quiet", on: { click: () => dialog.close() } }, "Cancel"),
      el("button", { type: "submit", class: "primary" }, "Look what changes")));
  const dialog = el("dialog", { "aria-label": "Reset offsets", on: { close: () => dialog.remove() } }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const targets = await Promise.all(queues.map((one) => targetOf(one, where.value, at.value, offset.value)));
      step.replaceChildren(...confirmation(answer.group, targets, async () => {
        dialog.close();
        await look();
      }));
    } catch (problem) {
      step.replaceChildren(failure(problem));
    }
  });
  form.addEventListener("input", () => step.replaceChildren());
  document.body.append(dialog);
  dialog.showModal();
}

async function targetOf(queue, where, at, offset) {
  const { topic, queue_id } = queue;
  const target = { topic, queue_id, from: queue.offset };
  if (where === "offset") return { ...target, offset: BigInt(plainNumber(offset)) };
  if (where !== "time") return { ...target, offset: where === "earliest" ? queue.min_offset : queue.max_offset };
  const found = await get(`${path("topics", topic, "queues", queue_id)}/offset`, { time: timeOfField(at) });
  return { ...target, offset: found.offset };
}

function confirmation(name, targets, done) {
  const change = targets.reduce((sum, one) => sum + BigInt(one.offset) - BigInt(one.from), 0n);
  const text = change > 0n ? `skips ${count(change)} messages for ever` : change < 0n ? `reads ${count(-change)} messages again` : "changes nothing";
  const outcome = el("div");
  const put = async () => {
    try {
      await request("PUT", `${path("groups", name)}/offsets`, { body: { offsets: targets.map(({ topic, queue_id, offset }) => ({ topic, queue_id, offset })) } });
      await done();
    } catch (problem) {
      outcome.replaceChildren(failure(problem));
    }
  };
  return [
    table("Changes", [["Queue", "number"], ["From", "number"], ["To", "number"]], targets.map((one) => [count(one.queue_id), count(one.from), count(one.offset)])),
    el("p", {}, `The group ${text}.`),
    el("button", { type: "button", class: "danger", on: { click: put } }, "Reset now"),
    outcome,
  ];
}
