// Messages by offset, time, key, id and physical offset: one request for each page.

import { Problem, get, path, urlOf } from "./api.js";
import { linkTo } from "./asked.js";
import { copyButtons } from "./copying.js";
import { el, to } from "./dom.js";
import { tagFilter } from "./finding.js";
import { MessageList } from "./message_list.js";
import { showResults, step } from "./results.js";
import { brief, offsets } from "./text.js";

const AT_ONCE = 500; // messages that a further search reads at once
const WAIT_MS = 2000; // for a message that was just sent

/** Show the message, or the messages of the record, that *relative* names. */
export async function single(result, relative, asked, signal) {
  if (!asked.value) {
    result.append(el("p", { class: "muted" }, "Enter the message id or the physical offset."));
    return;
  }
  if (relative.split("/").some((segment) => segment === "." || segment === "..")) throw new Problem(0, "NAME_ILLEGAL", "This is not a message id: expected 32 or 56 hex digits.");
  const answer = await get(relative, { body_encoding: "base64", wait_ms: WAIT_MS }, signal);
  const list = new MessageList(answer.topic, { open: String(answer.messages[0]?.physical_offset) });
  const topic = el("a", { href: to("/topic", { name: answer.topic }) }, brief(answer.topic));
  showResults(result, list, {
    asked, signal,
    parts: [el("span", {}, `In queue ${answer.queue_id} of `, topic), copyButtons(urlOf(relative, { body_encoding: "auto" }))],
  });
  list.add(answer.messages.map((message) => ({ ...message, queue_id: answer.queue_id })));
}

/** Show the messages of one queue from *offset* on. */
export async function pull(result, asked, offset, signal) {
  const relative = `${path("topics", asked.topic, "queues", asked.queue)}/messages`;
  const query = { offset, max_messages: asked.size, tag: asked.tag };
  const pulled = async (changes) => {
    const answer = await get(relative, { ...query, ...changes, body_encoding: "base64" }, signal);
    return { ...answer, messages: answer.messages.map((message) => ({ ...message, queue_id: answer.queue_id })) };
  };
  const answer = await pulled({});
  const [requested, size] = [BigInt(answer.requested_offset), BigInt(asked.size)];
  const [min, next, end] = [BigInt(answer.min_offset), BigInt(answer.next_offset), BigInt(answer.max_offset)];
  const at = (value) => linkTo(asked, { by: "offset", value });
  const held = offsets(min, end);
  const list = new MessageList(asked.topic, { open: asked.open, empty: emptyPull(answer, asked) });
  const more = () => {
    let from = next;
    return async () => {
      const further = await pulled({ offset: from, max_messages: AT_ONCE });
      const searched = Number(BigInt(further.next_offset) - from);
      from = BigInt(further.next_offset);
      return { messages: further.messages, searched, isAtEnd: searched === 0 || from >= BigInt(further.max_offset) };
    };
  };
  showResults(result, list, {
    asked, signal, more: next < end ? more : null, skipped: answer.skipped,
    parts: [
      held === null ? `Queue ${answer.queue_id} is empty` : `Queue ${answer.queue_id} holds ${held}`,
      [
        step("First", at("earliest"), requested > min),
        step("Older", at(requested - size > min ? requested - size : min), requested > min),
        step("Newer", at(next), next < end),
        step("Newest", linkTo(asked, { by: "newest" }), next < end),
      ],
      copyButtons(urlOf(relative, { ...query, body_encoding: "auto" })),
    ],
  });
  list.add(answer.messages);
}

function emptyPull(answer, asked) {
  if (answer.status === "NO_MESSAGE_IN_QUEUE") return "This queue is empty. Choose another one above.";
  if (answer.status === "NO_MATCHED_MESSAGE") return "No message with this tag on this page. Continue with “Newer”.";
  return asked.tag ? "No message with this tag from here on." : "No messages from here on. This is the queue's end.";
}

/** Show the messages of all queues with a key, or from a time on. */
export async function search(result, asked, signal) {
  const relative = `${path("topics", asked.topic)}/messages`;
  const isByTime = asked.by === "time";
  if (!isByTime && !asked.value) {
    result.append(el("p", { class: "muted" }, "Enter a key."));
    return;
  }
  const from = asked.value || "0";
  const of = { key: { key: asked.value }, unique: { unique_key: asked.value }, time: { from } };
  const query = { ...of[asked.by], limit: asked.size, cursor: asked.cursor };
  const answer = await get(relative, { ...query, body_encoding: "base64" }, signal);
  const found = answer.messages.filter(tagFilter(asked.tag));
  const list = new MessageList(asked.topic, { open: asked.open, empty: answer.next_cursor ? "No message on this page. Continue with “Newer”." : "No message was found." });
  const more = () => {
    let cursor = answer.next_cursor;
    return async () => {
      const { messages, next_cursor } = await get(relative, { ...query, limit: AT_ONCE, cursor, body_encoding: "base64" }, signal);
      cursor = next_cursor;
      return { messages, searched: messages.length, isAtEnd: cursor === null };
    };
  };
  const first = answer.messages[0];
  const until = asked.cursor && first ? BigInt(first.store_timestamp_ms) + 1n : from; // a cursor may be within a millisecond
  showResults(result, list, {
    asked, signal, more: answer.next_cursor === null ? null : more, skipped: answer.skipped,
    parts: [
      isByTime ? "All queues, in the order of the log" : "Messages in the key index, in the order of the log",
      [
        isByTime && step("Older", linkTo(asked, { by: "newest", until }), true),
        step("Newer", linkTo(asked, { cursor: answer.next_cursor }), answer.next_cursor !== null),
      ].filter(Boolean),
      copyButtons(urlOf(relative, { ...query, body_encoding: "auto" })),
    ],
  });
  list.add(found);
}
