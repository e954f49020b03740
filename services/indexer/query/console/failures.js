// What went wrong, and what to do about it.

import { el } from "./dom.js";
import { visible } from "./text.js";

const ADVICE = {
  UNREACHABLE: "Look whether it runs: `tidemark status`. The console goes on by itself once it answers.",
  UNAUTHENTICATED: "The service wants a token: reload the page to be asked again.",
  FORBIDDEN: "Your token does not allow this. Ask whoever gave it to you, or use another one.",
  WRITER_UNREACHABLE: "Start the writer, or set TIDEMARK_WRITER_ADDRESS of the query service.",
  GROUP_ACTIVE: "Stop the group's members first, or wait until their sessions are over.",
  STORE_LOCKED: "Another query process owns the groups' offsets: open that one's console.",
  OFFSET_TOO_SMALL: "What was there has been deleted by retention. Go on from the minimum.",
  OFFSET_OUT_OF_RANGE: "Nothing is stored there yet. Go back to the newest messages.",
  NOT_YET_VISIBLE: "It is stored, but not indexed yet. Try again in a moment.",
  CORRUPT_MESSAGE: "The record is damaged: the page Damage tells more.",
  TOPIC_NOT_FOUND: "Look it up on the page Topics: names are case-sensitive.",
  TOPIC_EXISTS: "A topic of this name has another shape. Choose another name.",
  RATE_LIMITED: "More was asked than you may. Try again in a moment.",
  IN_FLIGHT_LIMIT: "Too many requests wait. Try again in a moment.",
};

/** A box that tells a failure; *again*: what its button does. */
export function failure(problem, again) {
  const title = problem.status === 403 ? "Not allowed" : visible(problem.reason ?? "A fault of the console");
  const advice = ADVICE[problem.reason] ?? (problem.status === 403 ? ADVICE.FORBIDDEN : null);
  return el("div", { class: "failure", role: "alert" },
    el("strong", {}, title),
    el("p", {}, visible(problem.detail ?? problem.message)),
    advice && el("p", { class: "muted" }, advice),
    again && el("button", { type: "button", on: { click: again } }, "Try again"));
}
