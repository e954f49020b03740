// The page Topic: one topic and its queues.

import { get, path, urlOf } from "./api.js";
import { copyButtons } from "./copying.js";
import { el, facts, table, to } from "./dom.js";
import { sendForm } from "./send.js";
import { brief, count } from "./text.js";
import { permission, total } from "./topics.js";

export async function topic(page, parameters, { signal, poll }) {
  const name = parameters.get("name") ?? "";
  const head = el("header", { class: "head" }, el("h1", {}, brief(name) || "Topic"));
  page.append(head);
  const relative = path("topics", name);
  const content = el("div");
  head.append(el("span", { class: "actions" },
    el("a", { class: "button", href: to("/messages", { topic: name }) }, "Browse messages"),
    el("a", { class: "button", href: to("/messages", { topic: name, by: "tail" }) }, "Live tail"),
    copyButtons(urlOf(relative))));
  page.append(content);
  const look = async () => {
    const answer = await get(relative, {}, signal);
    const attributes = Object.entries(answer.attributes).map(([key, value]) => `${brief(key)} = ${brief(value)}`).join(", ");
    const summary = facts([
      ["Messages", count(total(answer.queues))],
      ["Kind", answer.queue_type],
      ["Permission", permission(answer.permission)],
      ["Queues to read", count(answer.read_queues)],
      ["Queues to write", count(answer.write_queues)],
      ["Attributes", attributes || "none"],
    ]);
    const rows = answer.queues.map((queue) => [
      count(queue.queue_id), count(queue.min_offset), count(queue.max_offset),
      count(BigInt(queue.max_offset) - BigInt(queue.min_offset)),
      el("a", { href: to("/messages", { topic: name, queue: queue.queue_id }), "aria-label": `Messages of queue ${queue.queue_id}` }, "Messages"),
    ]);
    const focused = content.contains(document.activeElement); // a new table would take the focus away
    if (!focused) {
      content.replaceChildren(el("section", { class: "card" }, summary),
        table(`Queues of ${brief(name)}`, [["Queue", "number"], ["First", "number"], ["Next", "number"], ["Messages", "number"], ""], rows, { empty: "This topic has no queues." }));
    }
    return answer;
  };
  page.append(sendForm(await look()));
  poll(look, 2000);
}
