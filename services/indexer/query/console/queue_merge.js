// Reads queues of a topic as one sequence in the order of the log, backwards or forwards, a few messages of each queue at a time.

import { request } from "./api.js";

const QUEUES_AT_ONCE = 500;
const MESSAGES_AT_ONCE = 2000;
const BYTES_AT_ONCE = 4 << 20; // of stored records

/** A position in each of several queues, and the messages from there. */
export class QueueMerge {
  /**
   * queues: bounds as in GET /v1/topics/{topic}; from: Map of queue_id → offset where reading begins (backwards: the first
   * offset that is not read); a queue without an entry has nothing to read backwards, and is read from its minimum forwards.
   */
  constructor(topic, queues, from, { backwards, signal }) {
    this.topic = topic;
    this.backwards = backwards;
    this.signal = signal;
    this.skipped = []; // damaged records that were left out
    this.refused = []; // problems of queues that could not be read
    this.taken = []; // kept for the next try if a request fails
    this.seen = { messages: 0, bytes: 0 };
    this.most = 1; // messages to read of each queue
    this.lanes = queues.map(({ queue_id, min_offset, max_offset }) => {
      const [min, max] = [BigInt(min_offset), BigInt(max_offset)];
      const start = from.get(queue_id) ?? min;
      return { queue_id, min, max, at: start < min ? min : start > max ? max : start, waiting: [], isRefused: false };
    });
  }

  /** Return the next messages: *most* of them, or fewer at the end. */
  async take(most) {
    this.most = Math.max(this.most, Math.ceil(most / Math.max(1, this.lanes.length)) + 1);
    while (this.taken.length < most) {
      await this.#fill();
      const lane = this.#next();
      if (lane === null) break;
      this.taken.push(lane.waiting.shift());
    }
    return this.taken.splice(0);
  }

  /** Return the position behind the messages that were taken, as a Map for the next QueueMerge, in either direction. */
  position() {
    return new Map(this.lanes.map(({ queue_id, at, waiting }) => {
      if (!waiting.length) return [queue_id, at];
      return [queue_id, BigInt(waiting[0].queue_offset) + (this.backwards ? 1n : 0n)];
    }));
  }

  /** Return true if all messages in this direction were taken. */
  get isAtEnd() {
    return this.lanes.every((lane) => !lane.waiting.length && !this.#hasMore(lane));
  }

  #hasMore({ at, min, max, isRefused }) {
    return !isRefused && (this.backwards ? at > min : at < max);
  }

  /** Return the queue whose next message is the next one in the log. */
  #next() {
    let best = null;
    for (const lane of this.lanes) {
      if (!lane.waiting.length) continue;
      const isNearer = best === null || (lane.waiting[0].physical_offset > best.waiting[0].physical_offset) === this.backwards;
      if (isNearer) best = lane;
    }
    return best;
  }

  /** Read until each queue has a message waiting, or has no more. */
  async #fill() {
    for (;;) {
      const empty = this.lanes.filter((lane) => !lane.waiting.length && this.#hasMore(lane)).slice(0, QUEUES_AT_ONCE);
      if (!empty.length) return;
      const most = BigInt(this.#mostOfEach(empty.length));
      await this.#read(empty.map((lane) => {
        const [from, to] = this.backwards ? [lane.at - most, lane.at] : [lane.at, lane.at + most];
        return { lane, from: from < lane.min ? lane.min : from, to: to > lane.max ? lane.max : to };
      }));
      this.most = Math.min(2 * this.most, MESSAGES_AT_ONCE);
    }
  }

  #mostOfEach(queues) {
    const average = this.seen.messages ? this.seen.bytes / this.seen.messages : 1;
    const room = Math.min(MESSAGES_AT_ONCE, BYTES_AT_ONCE / Math.max(1, average));
    return Math.max(1, Math.min(this.most, Math.floor(room / queues)));
  }

  /** Read spans of offsets, each of another queue, and put their messages into the queues' lanes. */
  async #read(spans) {
    const found = new Map(spans.map(({ lane }) => [lane.queue_id, []]));
    let open = spans.map((span) => ({ ...span, next: span.from }));
    while (open.length) {
      const answer = await this.#pull(open);
      for (const part of answer.answers) this.#keep(part, open.find(({ lane }) => lane.queue_id === part.queue_id), found);
      const pulled = new Set(answer.answers.map((part) => part.queue_id));
      open = open.filter(({ lane, next, to }, number) => next < to && (number >= answer.looked_at || pulled.has(lane.queue_id)));
    }
    for (const { lane, from, to } of spans) {
      lane.at = this.backwards ? from : to < lane.min ? lane.min : to;
      const messages = found.get(lane.queue_id);
      lane.waiting = this.backwards ? messages.reverse() : messages;
    }
  }

  #pull(open) {
    const queues = open.map(({ lane, next, to }) => ({ topic: this.topic, queue_id: lane.queue_id, offset: next, max_messages: Number(to - next) }));
    const body = { queues, max_messages: queues.reduce((sum, one) => sum + one.max_messages, 0), max_bytes: BYTES_AT_ONCE, body_encoding: "base64" };
    return request("POST", "v1/pull", { body, signal: this.signal });
  }

  /** Keep a part of an answer. A span ends where its queue is refused or does not move. */
  #keep(part, span, found) {
    if (part.reason === "OFFSET_TOO_SMALL" && BigInt(part.min_offset) > span.next) {
      span.lane.min = span.next = BigInt(part.min_offset); // retention has deleted them in the meantime
      return;
    }
    if (part.reason !== undefined) {
      this.refused.push(part);
      span.lane.isRefused = true;
      span.next = span.to;
      return;
    }
    const messages = part.messages.filter((message) => BigInt(message.queue_offset) < span.to);
    found.get(part.queue_id).push(...messages.map((message) => ({ ...message, queue_id: part.queue_id })));
    this.skipped.push(...part.skipped.filter((one) => BigInt(one.queue_offset) < span.to));
    this.seen.messages += messages.length;
    this.seen.bytes += messages.reduce((sum, message) => sum + message.body.length, 0);
    span.next = BigInt(part.next_offset) > span.next ? BigInt(part.next_offset) : span.to;
  }
}

/** Write a position for the URL: 0@30,1@12. */
export function writePosition(position) {
  return Array.from(position, ([queue_id, offset]) => `${queue_id}@${offset}`).join(",");
}

/** Read a position of the URL; parts that are none are left out. */
export function readPosition(text) {
  const parts = text.split(",").map((part) => /^(\d{1,10})@(\d{1,19})$/.exec(part)).filter((part) => part !== null);
  return new Map(parts.map(([, queue_id, offset]) => [Number(queue_id), BigInt(offset)]));
}
