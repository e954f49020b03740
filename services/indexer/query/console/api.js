// Requests to the service: every request of the console goes through `request`.

const ROOT = new URL("../", import.meta.url); // the console is served at console/
const TOKEN = "tidemark-token"; // in sessionStorage only, which ends with the tab
const NAME = /^(?=.{1,255}$)(?:%RETRY%[%|a-zA-Z0-9_-]+\+)?[%|a-zA-Z0-9_-]+$/; // of topics and groups: none leads out of its path

/** A failure as in problem+json; the reason is UNREACHABLE if there was no answer. */
export class Problem extends Error {
  constructor(status, reason, detail, facts = {}) {
    super(detail);
    Object.assign(this, { status, reason, detail, facts });
  }
}

/** Parse JSON. Integers beyond 2^53 become BigInt, so that none is rounded. */
export function parseExactly(text) {
  return JSON.parse(text, (_, value, context) => {
    if (typeof value !== "number" || !Number.isInteger(value) || Number.isSafeInteger(value)) return value;
    if (context === undefined) throw new Problem(0, "BROWSER_TOO_OLD", "This browser rounds 64-bit numbers: use a newer one.");
    return /^-?\d+$/.test(context.source) ? BigInt(context.source) : value;
  });
}

/** Write a value of parseExactly as JSON. */
export function writeExactly(value) {
  return JSON.stringify(value, (_, part) => (typeof part === "bigint" ? JSON.rawJSON(part.toString()) : part));
}

/** Return a path of the API: path("topics", name, "queues", 0). Throws a Problem for an illegal name. */
export function path(...segments) {
  const parts = segments.map((segment) => {
    if (!NAME.test(segment)) throw new Problem(0, "NAME_ILLEGAL", `“${segment}” is no name: letters, digits and % | _ - only.`);
    return encodeURIComponent(segment);
  });
  return `v1/${parts.join("/")}`;
}

/** Return the URL of a path, with the parameters that are not empty. */
export function urlOf(relative, query = {}) {
  const url = new URL(relative, ROOT);
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") url.searchParams.append(name, one);
    }
  }
  return url;
}

const listeners = { reachable: () => {}, store: () => {}, token: () => {}, askToken: async () => false };

/** Set the handlers reachable(yes), store(name), token(held) and askToken(), which returns true after a token was entered. */
export function listen(handlers) {
  Object.assign(listeners, handlers);
}

export const token = {
  get held() {
    return sessionStorage.getItem(TOKEN);
  },
  keep(text) {
    sessionStorage.setItem(TOKEN, text);
    listeners.token(true);
  },
  forget() {
    sessionStorage.removeItem(TOKEN);
    listeners.token(false);
  },
};

/** Return the answer's JSON. Asks for a token if the service requires one; throws a Problem for any other failure. */
export async function request(method, relative, options = {}) {
  return read(await answerTo(method, relative, options));
}

async function answerTo(method, relative, { query, body, headers: more, signal }) {
  for (;;) {
    const used = token.held;
    const headers = used === null ? { ...more } : { ...more, authorization: `Bearer ${used}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    const answer = await send(urlOf(relative, query), { method, headers, signal, body: body && writeExactly(body) });
    if (answer.status !== 401) return answer;
    if (used !== token.held) continue; // another request has a newer one by now
    if (!(await listeners.askToken(used !== null))) return answer;
    signal?.throwIfAborted();
  }
}

export const get = (relative, query, signal) => request("GET", relative, { query, signal });

/** Call take(rows) with the lines of an answer that stays open, as they arrive, until its end. Throws a Problem. */
export async function follow(relative, query, signal, take) {
  const asked = { query: { ...query, follow: "true" }, headers: { accept: "application/x-ndjson" }, signal };
  const answer = await answerTo("GET", relative, asked);
  if (!answer.ok) await read(answer);
  const pieces = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await pieces.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    const rows = lines.filter((line) => line !== "").map(parseExactly); // empty lines are heartbeats
    if (rows.length) take(rows);
  }
}

/** Return the results of job(item) for all *items*, in their order; at most *most* jobs run at a time. */
export async function inTurn(items, most, job) {
  const results = new Array(items.length);
  let next = 0;
  const work = async () => {
    while (next < items.length) {
      const number = next;
      next += 1;
      results[number] = await job(items[number]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, work));
  return results;
}

async function send(url, options) {
  try {
    const answer = await fetch(url, { cache: "no-store", credentials: "omit", redirect: "error", ...options });
    listeners.reachable(true);
    return answer;
  } catch (error) {
    if (options.signal?.aborted) throw error;
    listeners.reachable(false);
    throw new Problem(0, "UNREACHABLE", "The query service does not answer.");
  }
}

async function read(answer) {
  const text = await answer.text();
  let content;
  try {
    content = parseExactly(text);
  } catch (error) {
    if (error instanceof Problem) throw error;
    content = null;
  }
  if (answer.ok && content !== null) {
    listeners.store(String(content.store));
    return content;
  }
  const { reason = "HTTP_ERROR", detail = `The service answered ${answer.status}.`, ...facts } = content ?? {};
  throw new Problem(answer.status, String(reason), String(detail), facts);
}
