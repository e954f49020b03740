// The newest messages of a topic, of all queues or of one, and the pages before them.

import { get, inTurn, path, urlOf } from "./api.js";
import { linkTo } from "./asked.js";
import { copyButtons } from "./copying.js";
import { tagFilter } from "./finding.js";
import { MessageList } from "./message_list.js";
import { QueueMerge, readPosition, writePosition } from "./queue_merge.js";
import { showResults, step } from "./results.js";
import { count, offsets } from "./text.js";

const MOST_SEARCHED = 1000; // messages that one page reads to find those of a tag
const AT_ONCE = 500; // messages that a further search reads at once
const REQUESTS_AT_ONCE = 6;

export async function newest(result, asked, topic, signal) {
  const queues = await queuesOf(asked, topic, signal);
  const isForwards = asked.after !== "";
  const merge = new QueueMerge(asked.topic, queues, await startOf(asked, queues, signal), { backwards: !isForwards, signal });
  const begin = merge.position();
  const { found, searched } = await pageOf(merge, asked);
  const [lower, upper] = isForwards ? [begin, merge.position()] : [merge.position(), begin];
  const hasOlder = queues.some((queue) => lower.get(queue.queue_id) > BigInt(queue.min_offset));
  const hasNewer = queues.some((queue) => upper.get(queue.queue_id) < BigInt(queue.max_offset));
  const list = new MessageList(asked.topic, { open: asked.open, empty: emptyText(asked, queues, searched) });
  const more = () => {
    const further = new QueueMerge(asked.topic, queues, lower, { backwards: true, signal });
    return async () => {
      const messages = await further.take(AT_ONCE);
      return { messages, searched: messages.length, isAtEnd: further.isAtEnd };
    };
  };
  showResults(result, list, {
    asked, signal, more: hasOlder ? more : null, skipped: merge.skipped, refused: merge.refused,
    parts: [
      nameOf(asked, queues),
      [
        step("First", linkTo(asked, { after: "earliest" }), hasOlder),
        step("Older", linkTo(asked, { before: writePosition(withoutFinished(lower, queues)) }), hasOlder),
        step("Newer", linkTo(asked, { after: writePosition(upper) }), hasNewer),
        step("Newest", linkTo(asked), hasNewer),
      ],
      searched > 0 && copyButtons(urlOf("v1/pull"), requestOf(asked.topic, lower, upper)),
    ],
  });
  list.add(isForwards ? found.reverse() : found);
}

/** Return the bounds of the queues to read. Throws the service's Problem for a queue that does not exist. */
async function queuesOf(asked, topic, signal) {
  if (asked.queue === "") return topic.queues;
  const queue = topic.queues.find((one) => String(one.queue_id) === asked.queue);
  return [queue ?? (await get(path("topics", asked.topic, "queues", asked.queue), {}, signal))];
}

/** Return the offset in each queue where the page begins. */
async function startOf(asked, queues, signal) {
  if (asked.after !== "") return readPosition(asked.after);
  if (asked.before !== "") return readPosition(asked.before);
  if (asked.until === "") return new Map(queues.map((queue) => [queue.queue_id, BigInt(queue.max_offset)]));
  const found = await inTurn(queues, REQUESTS_AT_ONCE, async ({ queue_id }) => {
    const { offset } = await get(`${path("topics", asked.topic, "queues", queue_id)}/offset`, { time: asked.until }, signal);
    return [queue_id, BigInt(offset)];
  });
  return new Map(found);
}

/** Return a page of messages, which all have the requested tag, and the number of messages read for it. */
async function pageOf(merge, asked) {
  const isWanted = tagFilter(asked.tag);
  const found = [];
  let searched = 0;
  while (found.length < asked.size && searched < MOST_SEARCHED) {
    const messages = await merge.take(asked.size - found.length);
    if (!messages.length) break;
    searched += messages.length;
    found.push(...messages.filter(isWanted));
  }
  return { found, searched };
}

function withoutFinished(position, queues) {
  const first = new Map(queues.map((queue) => [queue.queue_id, BigInt(queue.min_offset)]));
  return new Map([...position].filter(([queue_id, offset]) => offset > first.get(queue_id)));
}

/** Return the request for exactly the messages between two positions. */
function requestOf(topic, lower, upper) {
  const queues = [...lower].filter(([queue_id, offset]) => upper.get(queue_id) > offset).map(([queue_id, offset]) =>
    ({ topic, queue_id, offset, max_messages: Number(upper.get(queue_id) - offset) }));
  return { queues, max_messages: queues.reduce((sum, one) => sum + one.max_messages, 0), body_encoding: "auto" };
}

function nameOf(asked, queues) {
  if (asked.queue === "") return `All ${count(queues.length)} queues, newest first`;
  const { queue_id, min_offset, max_offset } = queues[0];
  const held = offsets(min_offset, max_offset);
  return held === null ? `Queue ${queue_id} is empty` : `Queue ${queue_id} holds ${held}, newest first`;
}

function emptyText(asked, queues, searched) {
  if (searched > 0) return `No message with this tag among the ${count(searched)} of this page.`;
  if (queues.some((queue) => queue.max_offset > queue.min_offset)) return "No messages here.";
  return asked.queue === "" ? "This topic is empty." : "This queue is empty. Choose another one above.";
}
