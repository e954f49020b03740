// The field “Go to”: converts the typed text to a page and its parameters.

const ID = /^([0-9a-f]{32}|[0-9a-f]{56})$/i;
const PLACE = /^@?(\d{1,19})$/;
const QUEUE = /^([^/@:\s]+)\/(\d+)(?:@(\d{1,19}|earliest|latest))?$/;

/** Return [page, parameters] of `topic/0@12`, `topic:key`, a message id, a physical offset or a topic; null for "". */
export function placeOf(typed) {
  const text = typed.trim();
  if (text === "") return null;
  if (ID.test(text)) return ["/messages", { by: "id", value: text }];
  const place = PLACE.exec(text);
  if (place) return ["/messages", { by: "place", value: place[1] }];
  const queue = QUEUE.exec(text);
  if (queue) return ["/messages", { topic: queue[1], queue: queue[2], by: "offset", value: queue[3] ?? "" }];
  const colon = text.indexOf(":");
  if (colon > 0) return ["/messages", { topic: text.slice(0, colon), by: "key", value: text.slice(colon + 1) }];
  return ["/topics", { filter: text }];
}
