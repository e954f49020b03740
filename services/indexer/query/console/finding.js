// Filters of messages by tag and by text, and a search for further messages in bounded steps.

import { bytesOf } from "./body.js";
import { changed, el } from "./dom.js";
import { failure } from "./failures.js";
import { brief, count } from "./text.js";

const MOST_SEARCHED = 5000; // messages of one step
const MOST_BYTES = 64 << 20; // of their bodies
const MOST_FOUND = 200;
const TYPING_MS = 150;

/** Return the test for a tag expression such as A || B; the test accepts every message if it is empty. */
export function tagFilter(expression) {
  const tags = new Set(expression.split("||").map((tag) => tag.trim()).filter((tag) => tag !== ""));
  return (message) => tags.size === 0 || tags.has("*") || tags.has(message.tag);
}

/** Return the test for a text in the body, the keys, the tag, the properties or the id of a message, in any case. */
export function textFilter(text) {
  const sought = text.toLowerCase();
  const has = (part) => part.toLowerCase().includes(sought);
  return (message) => sought === "" ||
    [message.tag ?? "", message.message_id ?? "", ...message.keys, ...Object.entries(message.properties).flat()].some(has) ||
    has(new TextDecoder().decode(bytesOf(message.body)));
}

/**
 * Return the field that filters *list*, with a button that looks further.
 *
 * more: makes a function that reads on from the end of the list and returns {messages, searched, isAtEnd}; null if the
 * list has no further messages. pages: the element whose links keep the text.
 */
export function findBar(list, asked, { more = null, pages, signal }) {
  const input = el("input", { type: "search", name: "find", value: asked.find, maxlength: "400", placeholder: "Find in these messages", "aria-label": "Find in these messages", spellcheck: "false" });
  const state = el("span", { role: "status" });
  const further = el("button", { type: "button" }, "Look further");
  const stop = el("button", { type: "button" }, "Cancel");
  const limit = el("span", { class: "muted" }, `at most ${count(MOST_SEARCHED)} messages`);
  const outcome = el("div");
  let typing = null; // timer of the filter
  let search = null; // of the text in the field: what was read beyond the list

  const show = () => {
    const isFiltering = input.value !== "" || asked.tag !== "";
    const isRunning = search?.isRunning ?? false;
    further.hidden = limit.hidden = more === null || !isFiltering || isRunning || (search?.isAtEnd ?? false);
    stop.hidden = !isRunning;
    const here = input.value === "" ? "" : `${count(list.shown)} of ${count(list.length)} here. `;
    const beyond = search === null ? "" : `${count(search.found)} in ${count(search.searched)} further messages${search.isAtEnd ? "; there are no more" : ""}.`;
    state.textContent = `${here}${beyond}`;
  };
  const filter = () => {
    clearTimeout(typing);
    typing = null;
    if (search !== null) search.isDropped = true;
    search = null;
    outcome.replaceChildren();
    list.dropFurther();
    list.filter(textFilter(input.value));
    const change = { find: input.value };
    history.replaceState(null, "", changed(location.hash, change));
    for (const link of pages.querySelectorAll(".steps a")) link.setAttribute("href", changed(link.getAttribute("href"), change));
    show();
  };
  input.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => !signal.aborted && filter(), TYPING_MS);
  });
  further.addEventListener("click", async () => {
    if (typing !== null) filter();
    search ??= { next: more(), searched: 0, found: 0, isAtEnd: false };
    const mine = search;
    const [hasTag, hasText] = [tagFilter(asked.tag), textFilter(input.value)];
    outcome.replaceChildren();
    try {
      await look(mine, (message) => hasTag(message) && hasText(message), list, show);
    } catch (problem) {
      if (!signal.aborted && !mine.isDropped) outcome.replaceChildren(failure(problem));
    }
    show();
  });
  stop.addEventListener("click", () => {
    search.isStopped = true;
    stop.hidden = true;
  });
  list.watch(show);
  if (asked.find !== "") list.filter(textFilter(asked.find));
  show();
  return el("div", { class: "findbar" }, el("div", { class: "resultbar" },
    el("span", { class: "steps" }, input, asked.tag !== "" && withoutTag(asked.tag), state),
    el("span", { class: "steps" }, further, stop, limit)), outcome);
}

/** Read until a limit of one step is reached, and add the messages that pass the test to *list*. */
async function look(search, isWanted, list, show) {
  Object.assign(search, { isRunning: true, isStopped: false });
  const from = search.searched;
  let [bytes, found] = [0, 0];
  show();
  try {
    while (!search.isStopped && !search.isAtEnd && search.searched - from < MOST_SEARCHED && bytes < MOST_BYTES && found < MOST_FOUND) {
      const { messages, searched, isAtEnd } = await search.next();
      if (search.isDropped) return;
      const wanted = messages.filter(isWanted);
      bytes += messages.reduce((sum, message) => sum + message.body.length, 0);
      found += wanted.length;
      search.searched += searched;
      search.found += wanted.length;
      search.isAtEnd = isAtEnd;
      list.add(wanted, { isFurther: true });
      show();
    }
  } finally {
    search.isRunning = false;
  }
}

function withoutTag(tag) {
  return el("a", { class: "chip", href: changed(location.hash, { tag: "", open: "" }), "aria-label": `Show all tags, not only ${brief(tag, 40)}` }, `${brief(tag, 40)} ×`);
}
