// The page Overview: the state of the writer, the pipeline and the groups, the rates, and a verdict.

import { get } from "./api.js";
import { el, facts, table, to } from "./dom.js";
import { Series, plotTile } from "./plot.js";
import { brief, count, rate, size, span } from "./text.js";
import { moment, time } from "./times.js";

const series = { written: new Series(), indexed: new Series(), lag: new Series() }; // kept when the user leaves the page
const STALE_MS = 10_000;
let before = null;

export async function overview(page, _, { signal, poll }) {
  const verdict = el("p", { class: "verdict", role: "status" });
  const written = plotTile("Written", rate, "committed bytes");
  const indexed = plotTile("Indexed", rate, "bytes that became readable");
  const lag = plotTile("Lag", size, "committed, not readable yet");
  const position = el("section", { class: "card" });
  const services = el("section", { class: "card" });
  const members = el("section", { class: "card", hidden: true });
  const groups = el("section", { class: "card" });
  page.append(el("h1", {}, "Overview"), verdict,
    el("div", { class: "tiles" }, written.element, indexed.element, lag.element),
    el("div", { class: "cards" }, position, services, members, groups));

  poll(async () => {
    const now = Date.now();
    try {
      sample(now, await get("v1/watermark", {}, signal));
    } catch (error) {
      if (!signal.aborted) sample(now, null);
      throw error;
    } finally {
      written.draw(series.written, now);
      indexed.draw(series.indexed, now);
      lag.draw(series.lag, now);
    }
  }, 1000);
  const look = async () => {
    const status = await get("v1/status", {}, signal);
    const [kind, text] = verdictOf(status);
    verdict.className = `verdict ${kind}`;
    if (verdict.textContent !== text) verdict.textContent = text;
    position.replaceChildren(...positionOf(status));
    services.replaceChildren(...servicesOf(status));
    members.replaceChildren(...membersOf(status));
    members.hidden = !members.childElementCount;
    groups.replaceChildren(...groupsOf(status));
  };
  await look();
  poll(look, 5000);
}

function sample(at, answer) {
  const now = answer && { at, committed: answer.committed_offset, visible: answer.watermark.physical_offset };
  const perSecond = (name) => {
    if (!now || !before || at - before.at > 5000) return null;
    return Math.max(0, (Number(BigInt(now[name]) - BigInt(before[name])) * 1000) / Math.max(1, at - before.at));
  };
  series.written.add(at, perSecond("committed"));
  series.indexed.add(at, perSecond("visible"));
  series.lag.add(at, answer ? Number(answer.lag_bytes) : null);
  before = now;
}

/** Return [good | warn | bad, a sentence]. */
function verdictOf(status) {
  const { writer, pipeline, disk, replication, follow } = status;
  if (status.corruptions) return ["bad", `In the ledger: ${count(status.corruptions)} damaged ${Number(status.corruptions) === 1 ? "place" : "places"}.`];
  if (disk.full_in_s !== null && disk.full_in_s < 86_400) return ["bad", `The disk is full in ${span(1000 * disk.full_in_s)} at this rate.`];
  if (status.attached) return ["good", "Attached to a broker's store, read-only."];
  if (follow && !follow.is_connected) return ["warn", `Broker ${brief(follow.broker)} is not followed: ${brief(follow.problem)}`];
  if (replication && replication.writer === null) return ["bad", "The group has no writer: no messages can be appended."];
  if (replication && replication.in_sync.length < replication.min_in_sync) {
    return ["bad", `Appends are refused: ${count(replication.in_sync.length)} members are in sync, ${count(replication.min_in_sync)} are needed.`];
  }
  if (pipeline.alive_age_ms === null) return ["warn", "The store was never indexed: start the pipeline."];
  if (pipeline.alive_age_ms > STALE_MS) return ["warn", `The pipeline has sent no sign of life for ${span(pipeline.alive_age_ms)}.`];
  if (!writer.present) return ["warn", "No writer has the store open: no messages can be appended."];
  if (pipeline.behind_since_ms !== null && Date.now() - Number(pipeline.behind_since_ms) > STALE_MS) {
    return ["warn", `The watermark has been behind the committed offset since ${time(pipeline.behind_since_ms)}.`];
  }
  return ["good", "Writer and pipeline are running, and everything committed can be read."];
}

function positionOf(status) {
  const { log, disk } = status;
  return [el("h2", {}, "Log"), facts([
    ["Indexed", count(status.watermark.physical_offset)],
    ["Committed", count(status.committed_offset)],
    ["Begins at", count(log.min_physical_offset)],
    ["Files", el("a", { href: to("/log") }, `${count(log.files)} of ${size(log.file_size_bytes)}`)],
    ["Grows by", log.growth === null ? "–" : rate(log.growth.bytes_per_s)],
    ["Disk free", `${size(disk.free_bytes)} of ${size(disk.total_bytes)}`],
    ["Full in", disk.full_in_s === null ? "–" : span(1000 * Number(disk.full_in_s))],
    ["Topics", el("a", { href: to("/topics") }, count(status.topics))],
    ["Damage", el("a", { href: to("/damage") }, count(status.corruptions))],
  ])];
}

function servicesOf({ version, writer, pipeline, query }) {
  return [el("h2", {}, "Services"), facts([
    ["Writer", writer.present ? `running, process ${writer.pid ?? "unknown"}` : "not running"],
    ["Term", count(writer.term)],
    ["Flush mode", writer.flush_mode],
    ["Last append", moment(writer.last_append_ms)],
    ["Pipeline", pipeline.alive_age_ms === null ? "never started" : `alive ${span(pipeline.alive_age_ms)} ago`],
    ["Last indexed", pipeline.published_age_ms === null ? "–" : `${span(pipeline.published_age_ms)} ago`],
    ["Shards", count(pipeline.shards.length)],
    ["Version", brief(version)],
    ["Waiting pulls", count(query.waiting_requests)],
    ["Appends over REST", writer.forwarding_to === null ? "off" : `forwarded to ${brief(writer.forwarding_to)}`],
  ])];
}

/** Return the members of a replication group, or the broker that is followed; nothing for a store of its own. */
function membersOf({ replication, follow }) {
  if (follow) {
    return [el("h2", {}, "Followed broker"), facts([
      ["Broker", brief(follow.broker)],
      ["Address", follow.address || "–"],
      ["Connected", follow.is_connected ? "yes" : "no"],
      ["Behind", follow.behind_bytes === null ? "–" : size(follow.behind_bytes)],
      ["Looked at", moment(follow.at_ms)],
    ])];
  }
  if (!replication) return [];
  return [el("h2", {}, "Replication"), facts([
    ["This member", replication.role],
    ["Writer", replication.writer === null ? "none" : brief(replication.writer)],
    ["In sync", replication.in_sync.map((name) => brief(name)).join(", ") || "none"],
    ["Needed in sync", count(replication.min_in_sync)],
    ["Epoch", count(replication.epoch)],
    ["May lack messages", replication.may_lack_messages ? "yes" : "no"],
  ])];
}

function groupsOf({ groups }) {
  const rows = (groups.most_lag ?? []).map(({ group, lag }) => [el("a", { href: to("/group", { name: group }) }, brief(group)), count(lag)]);
  const empty = groups.most_lag === null ? "Too many offsets to compute the lag here." : groups.count ? "No group lags." : "No group has an offset yet.";
  return [el("h2", {}, `Groups behind, of ${count(groups.count)}`), table("Groups that lag most", ["Group", ["Lag", "number"]], rows, { empty })];
}
