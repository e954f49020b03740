// Failures, with advice on how to resolve them.

import { el } from "./dom.js";
import { visible } from "./text.js";

const ADVICE = {
  UNREACHABLE: "Check with `tidemark status` whether it runs. The console continues when the service answers.",
  UNAUTHENTICATED: "The service requires a token: reload the page to enter one.",
  FORBIDDEN: "Your token does not allow this. Ask your administrator, or use another token.",
  WRITER_UNREACHABLE: "Start the writer, or set TIDEMARK_WRITER_ADDRESS of the query service.",
  GROUP_ACTIVE: "Stop the group's members first, or wait until their sessions time out.",
  STORE_LOCKED: "Another query process owns the groups' offsets: open the console of that process.",
  OFFSET_TOO_SMALL: "Retention has deleted these messages. Continue from the minimum.",
  OFFSET_OUT_OF_RANGE: "No message is stored there yet. Go back to the newest messages.",
  NOT_YET_VISIBLE: "The message is stored, but not indexed yet. Try again in a moment.",
  CORRUPT_MESSAGE: "The record is damaged: see the page Damage.",
  TOPIC_NOT_FOUND: "Look for the topic on the page Topics: names are case-sensitive.",
  TOPIC_EXISTS: "A topic of this name has other settings. Choose another name.",
  RATE_LIMITED: "You have sent more requests than your limit. Try again in a moment.",
  IN_FLIGHT_LIMIT: "Too many requests wait. Try again in a moment.",
};

/** Return a box that shows a failure; *again*: called by its button. */
export function failure(problem, again) {
  const title = problem.status === 403 ? "Not allowed" : visible(problem.reason ?? "An error of the console");
  const advice = ADVICE[problem.reason] ?? (problem.status === 403 ? ADVICE.FORBIDDEN : null);
  return el("div", { class: "failure", role: "alert" },
    el("strong", {}, title),
    el("p", {}, visible(problem.detail ?? problem.message)),
    advice && el("p", { class: "muted" }, advice),
    again && el("button", { type: "button", on: { click: again } }, "Try again"));
}
