// The live tail of one queue or of all queues of a topic: one request that stays open.

import { follow, get, path } from "./api.js";
import { el } from "./dom.js";
import { tagFilter } from "./finding.js";
import { MessageList } from "./message_list.js";
import { showResults } from "./results.js";
import { count } from "./text.js";

const ASK_AGAIN_MS = 1000; // after the end of an answer
const TOGETHER_MS = 50; // messages of several queues that arrive within this time are shown in their order
const MOST_MESSAGES = 200;

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
  let arrived = [];
  const show = () => {
    if (isPaused || !arrived.length) return;
    const messages = arrived.sort((one, other) => Number(BigInt(one.physical_offset) - BigInt(other.physical_offset)));
    arrived = [];
    seen += messages.length;
    state.textContent = `${count(seen)} since this page was opened`;
    list.add(messages, { newestFirst: true, most: MOST_MESSAGES });
  };
  poll(follower(asked, topic, signal, (messages) => {
    arrived = [...arrived, ...messages.filter(isWanted)].slice(-MOST_MESSAGES);
    setTimeout(show, TOGETHER_MS);
  }), ASK_AGAIN_MS);
  pause.addEventListener("click", show);
}

/** Return a function that follows the queues until the answer ends, and continues behind their last messages. */
function follower(asked, topic, signal, take) {
  const next = new Map();
  let isOpen = false;
  const rows = (found) => {
    const messages = found.filter((row) => row.event === undefined);
    for (const { queue_id, queue_offset } of messages) next.set(queue_id, BigInt(queue_offset) + 1n);
    take(messages);
  };
  return async () => {
    if (isOpen) return;
    isOpen = true;
    try {
      const isFirst = next.size === 0;
      const { queues } = isFirst ? topic : await get(path("topics", asked.topic), {}, signal);
      for (const { queue_id, min_offset, max_offset } of queues) {
        if (asked.queue !== "" && String(queue_id) !== asked.queue) continue;
        if (!next.has(queue_id)) next.set(queue_id, isFirst ? max_offset : min_offset); // all of a queue that was added
      }
      if (!next.size) next.set(asked.queue, "latest");
      const queue = [...next].map(([queue_id, offset]) => `${asked.topic}:${queue_id}:${offset}`);
      await follow("v1/pull", { queue, body_encoding: "base64" }, signal, rows);
    } finally {
      isOpen = false;
    }
  };
}
