// The live tail: of one queue by waiting pulls; of a topic by its bounds, and by pulls from queues whose end has moved.

import { get, path } from "./api.js";
import { el } from "./dom.js";
import { tagFilter } from "./finding.js";
import { MessageList } from "./message_list.js";
import { showResults } from "./results.js";
import { count } from "./text.js";

const WAIT_MS = 20_000;
const ASK_EVERY_MS = 1000;
const MOST_MESSAGES = 200;
const A_PAGE = 100;

export function tail(result, asked, topic, { signal, poll }) {
  let seen = 0;
  let isPaused = false;
  const list = new MessageList(asked.topic, { empty: "Waiting for the next message." });
  const state = el("span", { role: "status" }, "Waiting");
  const pause = el("button", { type: "button", on: { click: () => {
    isPaused = !isPaused;
    pause.textContent = isPaused ? "Resume" : "Pause";
    state.textContent = isPaused ? "Paused" : "Waiting";
  } } }, "Pause");
  showResults(result, list, { asked, signal, parts: [el("span", { class: "live" }, state), pause] });
  const isWanted = tagFilter(asked.tag);
  const add = (all) => {
    const messages = all.filter(isWanted);
    if (!messages.length) return;
    seen += messages.length;
    state.textContent = `${count(seen)} since this page was opened`;
    list.add(messages, { newestFirst: true, most: MOST_MESSAGES });
  };
  const look = asked.queue === "" ? wholeTopic(asked, topic, signal) : oneQueue(asked, topic, signal);
  poll(async () => !isPaused && add(await look()), asked.queue === "" ? ASK_EVERY_MS : 50);
}

function oneQueue(asked, topic, signal) {
  const queue = topic.queues.find((one) => String(one.queue_id) === asked.queue);
  let offset = queue ? queue.max_offset : "latest";
  return async () => {
    const answer = await get(`${path("topics", asked.topic, "queues", asked.queue)}/messages`, { offset, wait_ms: WAIT_MS, max_messages: A_PAGE, tag: asked.tag, body_encoding: "base64" }, signal);
    offset = answer.next_offset;
    return answer.messages.map((message) => ({ ...message, queue_id: answer.queue_id }));
  };
}

/** Pull from the queues of a topic. Their bounds are read first, so that only queues with new messages are pulled. */
function wholeTopic(asked, topic, signal) {
  const next = new Map(topic.queues.map((queue) => [queue.queue_id, queue.max_offset]));
  return async () => {
    const { queues } = await get(path("topics", asked.topic), {}, signal);
    const found = [];
    for (const { queue_id, min_offset, max_offset } of queues) {
      const offset = next.get(queue_id) ?? min_offset;
      if (max_offset <= offset) continue;
      const answer = await get(`${path("topics", asked.topic, "queues", queue_id)}/messages`, { offset, max_messages: A_PAGE, body_encoding: "base64" }, signal);
      next.set(queue_id, answer.next_offset);
      found.push(...answer.messages.map((message) => ({ ...message, queue_id })));
    }
    return found.sort((one, other) => Number(BigInt(one.physical_offset) - BigInt(other.physical_offset)));
  };
}
