// The field “Go to”: converts the typed text to a page and its parameters.

import { get } from "./api.js";
import { plainNumber } from "./text.js";

const ID = /^([0-9a-f]{32}|[0-9a-f]{56})$/i;
const NUMBER = "\\d{1,19}|\\d{1,3}(?:,\\d{3}){1,6}"; // also as the console writes it: 45,010,325
const PLACE = new RegExp(`^@?(${NUMBER})$`);
const QUEUE = new RegExp(`^([^/@:\\s]+)/(${NUMBER})(?:@(${NUMBER}|earliest|latest))?$`);

/** Return [page, parameters] of `topic/0@12`, `topic:key`, a message id, a physical offset or a topic; null for "". */
export async function placeOf(typed) {
  const text = typed.trim().replace(/^\//, "");
  if (text === "") return null;
  if (ID.test(text)) return ["/messages", { by: "id", value: text }];
  const place = PLACE.exec(text);
  if (place) return ["/messages", { by: "place", value: plainNumber(place[1]) }];
  const queue = QUEUE.exec(text);
  if (queue) return ["/messages", { topic: queue[1], queue: plainNumber(queue[2]), value: plainNumber(queue[3] ?? "") }];
  const colon = text.indexOf(":");
  if (colon > 0) return ["/messages", { topic: text.slice(0, colon), by: "key", value: text.slice(colon + 1) }];
  return topicOf(text);
}

/** Return the page of the topic of this name, or of the only one with this text in its name; otherwise the list. */
async function topicOf(text) {
  try {
    const names = (await get("v1/topics")).topics.map((one) => one.topic);
    const similar = names.filter((name) => name.toLowerCase().includes(text.toLowerCase()));
    const name = names.includes(text) ? text : similar.length === 1 ? similar[0] : null;
    if (name !== null) return ["/topic", { name }];
  } catch {
    // the page Topics shows the failure
  }
  return ["/topics", { filter: text }];
}
