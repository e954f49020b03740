// Small SVG plots of the last two minutes: a line and the area below it.

import { el, svg } from "./dom.js";

const WIDTH = 240;
const HEIGHT = 48;
const SHOWN_MS = 120_000;
const LEAST_MS = 20_000; // a plot with fewer samples is stretched

/** Samples of one number over time; old samples are removed. */
export class Series {
  samples = []; // {at, value}; value is null if it was unknown at that time

  add(at, value) {
    this.samples.push({ at, value });
    while (this.samples.length && at - this.samples[0].at > SHOWN_MS) this.samples.shift();
  }

  get last() {
    return this.samples.at(-1)?.value ?? null;
  }

  get most() {
    return Math.max(0, ...this.samples.map((sample) => sample.value ?? 0));
  }
}

/** Return a tile with a number and its plot: {element, draw(series, now)}. *write* formats a value. */
export function plotTile(name, write, hint) {
  const line = svg("path", { class: "line" });
  const area = svg("path", { class: "area" });
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" }, area, line);
  const value = el("span", { class: "figure" }, "–");
  const element = el("section", { class: "tile" },
    el("h2", {}, name), value, drawing, el("small", { class: "muted" }, hint));

  function draw(series, now) {
    value.textContent = series.last === null ? "–" : write(series.last);
    const top = series.most || 1;
    const shown = Math.max(LEAST_MS, now - (series.samples[0]?.at ?? now));
    const x = (at) => (WIDTH * (1 - (now - at) / shown)).toFixed(1);
    const y = (number) => (HEIGHT - 2 - ((HEIGHT - 6) * number) / top).toFixed(1);
    const runs = runsOf(series.samples);
    line.setAttribute("d", runs.map((run) => run.map((one, i) => `${i ? "L" : "M"}${x(one.at)} ${y(one.value)}`).join("")).join(""));
    area.setAttribute("d", runs.map((run) =>
      `M${x(run[0].at)} ${HEIGHT}${run.map((one) => `L${x(one.at)} ${y(one.value)}`).join("")}L${x(run.at(-1).at)} ${HEIGHT}Z`).join(""));
    drawing.setAttribute("aria-label", `${name}, last two minutes: now ${value.textContent}, most ${write(series.most)}`);
  }
  return { element, draw };
}

/** Split samples into runs without gaps. */
function runsOf(samples) {
  const runs = [];
  let run = null;
  for (const sample of samples) {
    const last = run?.at(-1);
    if (sample.value === null) run = null;
    else if (last && sample.at - last.at < 5000) run.push(sample);
    else runs.push((run = [sample]));
  }
  return runs;
}
