// The frame of the console: selects the page, and handles keys, theme, time zone and token.

import { listen, token } from "./api.js";
import { damage } from "./damage.js";
import { el, field, to } from "./dom.js";
import { failure } from "./failures.js";
import { placeOf } from "./goto.js";
import { group, groups } from "./groups.js";
import { log } from "./log.js";
import { messages } from "./messages.js";
import { overview } from "./overview.js";
import { visible } from "./text.js";
import { zone } from "./times.js";
import { topic } from "./topic.js";
import { topics } from "./topics.js";

const PAGES = {
  "/": { name: "Overview", show: overview },
  "/topics": { name: "Topics", show: topics },
  "/topic": { name: "Topic", show: topic, below: "/topics" },
  "/messages": { name: "Messages", show: messages },
  "/groups": { name: "Groups", show: groups },
  "/group": { name: "Group", show: group, below: "/groups" },
  "/log": { name: "Log", show: log },
  "/damage": { name: "Damage", show: damage },
};
const THEMES = ["auto", "light", "dark"];
const main = document.getElementById("main");
let life = new AbortController(); // aborted when the user leaves the page
let shown = null;

/** Show the page of the URL. A page gets its element, its parameters, and a signal that aborts when it is left. */
async function route() {
  if (location.hash && !location.hash.startsWith("#/")) return; // not a page of the console
  const [path, query = ""] = location.hash.slice(1).split(/\?(.*)/s);
  const place = path || "/";
  const page = Object.hasOwn(PAGES, place) ? PAGES[place] : null;
  life.abort();
  life = new AbortController();
  const { signal } = life;
  document.title = `${page ? page.name : "No such page"} · Tidemark`;
  mark(page?.below ?? place);
  const content = el("div", { class: "page" });
  main.replaceChildren(content);
  if (shown !== null && shown !== place) main.focus({ preventScroll: true });
  if (shown !== place) scrollTo(0, 0);
  shown = place;
  if (page === null) {
    content.append(el("h1", {}, "No such page"), el("p", {}, el("a", { href: "#/" }, "Go to the overview")));
    return;
  }
  try {
    await page.show(content, new URLSearchParams(query), { signal, poll: poller(signal) });
  } catch (error) {
    if (!signal.aborted) content.append(failure(error, route));
  }
}

/** Return poll(look, everyMs): call look periodically, one call at a time, not while the page is hidden; ignore errors. */
function poller(signal) {
  return (look, everyMs) => {
    let timer;
    const turn = async () => {
      clearTimeout(timer);
      if (signal.aborted || document.hidden) return;
      try {
        await look();
      } catch {
        // if the service is unreachable, the banner shows it; other errors end or recur with the next call
      }
      if (!signal.aborted) timer = setTimeout(turn, everyMs);
    };
    document.addEventListener("visibilitychange", turn, { signal });
    signal.addEventListener("abort", () => clearTimeout(timer));
    return turn();
  };
}

const links = Object.entries(PAGES).filter(([, page]) => !page.below).map(([place, page]) =>
  el("a", { href: `#${place}` }, page.name));
document.getElementById("pages").append(...links);

function mark(place) {
  for (const link of links) {
    if (link.getAttribute("href") === `#${place}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// -- theme ----------------------------------------------------------------------------------------------------------

const theme = document.getElementById("theme");

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  theme.textContent = { auto: "Theme: auto", light: "Theme: light", dark: "Theme: dark" }[name];
}

theme.addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  localStorage.setItem("tidemark-theme", next);
  setTheme(next);
});
setTheme(THEMES.includes(localStorage.getItem("tidemark-theme")) ? localStorage.getItem("tidemark-theme") : "auto");

// -- time zone ------------------------------------------------------------------------------------------------------

const times = document.getElementById("times");
const nameZone = () => (times.textContent = `Times: ${zone.name}`);
times.addEventListener("click", () => {
  zone.turn();
  nameZone();
  route();
});
nameZone();

// -- token ----------------------------------------------------------------------------------------------------------

const forget = document.getElementById("forget");
let asking = null;

function askToken(wasRefused) {
  asking ??= askOnce(wasRefused).finally(() => (asking = null));
  return asking;
}

function askOnce(wasRefused) {
  return new Promise((resolve) => {
    const input = el("input", { type: "password", name: "token", required: true, autocomplete: "off", spellcheck: "false" });
    const form = el("form", { method: "dialog" },
      el("h2", {}, "Enter a token"),
      el("p", { class: "muted" }, wasRefused ? "The service did not take that one." : "This service requires a token."),
      field("Token", input, "Stored in this tab only, until the tab is closed."),
      el("div", { class: "actions" },
        el("button", { type: "button", class: "quiet", on: { click: () => dialog.close() } }, "Cancel"),
        el("button", { type: "submit", class: "primary" }, "Continue")));
    const dialog = el("dialog", { "aria-label": "Token", on: { close: () => {
      dialog.remove();
      resolve(false);
    } } }, form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      token.keep(input.value.trim());
      resolve(true);
      dialog.close();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

listen({
  reachable: (yes) => (document.getElementById("unreachable").hidden = yes),
  store: (name) => (document.getElementById("store").textContent = visible(name)),
  token: (held) => (forget.hidden = !held),
  askToken,
});
forget.hidden = token.held === null;
forget.addEventListener("click", () => {
  token.forget();
  route();
});

// -- keys -----------------------------------------------------------------------------------------------------------

const goto = document.getElementById("goto-text");

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, select, textarea, dialog");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    goto.focus();
    goto.select();
  }
  if (event.key === "Escape" && event.target === goto) main.focus();
});
document.getElementById("goto").addEventListener("submit", async (event) => {
  event.preventDefault();
  const typed = goto.value;
  const place = await placeOf(typed);
  if (place !== null && goto.value === typed) location.hash = to(...place);
});
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", route);
route();
