// The parameters of the page Messages: which messages the URL asks for.

import { to } from "./dom.js";

export const WAYS = [["newest", "Newest"], ["offset", "Offset"], ["time", "Time"], ["key", "Key"], ["unique", "Unique key"], ["tail", "Live tail"], ["id", "Message id"], ["place", "Place in the log"]];
export const SIZES = [20, 50, 100];
export const WITHOUT_TOPIC = new Set(["id", "place"]);

/** Return the parameters, with defaults. Without a value, `by` is the newest messages, otherwise an offset. */
export function readAsked(parameters) {
  const text = (name) => parameters.get(name) ?? "";
  const value = text("value").trim();
  const by = WAYS.some(([way]) => way === text("by")) ? text("by") : "offset";
  return {
    topic: text("topic").trim(),
    queue: text("queue"),
    by: by === "offset" && value === "" ? "newest" : by,
    value,
    tag: text("tag"),
    find: text("find"),
    size: SIZES.includes(Number(text("size"))) ? Number(text("size")) : SIZES[0],
    cursor: text("cursor"), // of a page of a search
    before: text("before"), // positions of a page of the newest messages, and a time that bounds it
    after: text("after"),
    until: text("until"),
    open: parameters.get("open"),
  };
}

/** Return a link to the messages of *asked* with other parameters. The place of its page is not kept. */
export function linkTo({ topic, queue, by, value, tag, find, size }, changes = {}) {
  const asked = { topic, queue, by, value, tag, find, size, ...changes };
  if (asked.by === "newest") asked.by = asked.value = "";
  return to("/messages", { ...asked, size: asked.size === SIZES[0] ? "" : asked.size });
}
