// Times, always with their zone: UTC, or the browser's zone if the user has chosen that.

import { el } from "./dom.js";

const KEY = "tidemark-times"; // in localStorage
const LATEST_MS = 8.64e15 - 86_400_000; // the latest Date, less a day for any zone

const pad = (number, width = 2) => String(number).padStart(width, "0");

export const zone = {
  get isLocal() {
    return localStorage.getItem(KEY) === "local";
  },
  get name() {
    return zone.isLocal ? "local" : "UTC";
  },
  turn() {
    localStorage.setItem(KEY, zone.isLocal ? "UTC" : "local");
  },
};

/** Format a time as 2026-11-22 17:05:01.234 UTC, or with UTC+01:00 in the browser's zone; an invalid time as a dash. */
export function time(ms, isLocal = zone.isLocal) {
  if (!(Number(ms) > 0 && Number(ms) < LATEST_MS)) return "–";
  const date = new Date(Number(ms));
  const offset = isLocal ? -date.getTimezoneOffset() : 0; // minutes
  const text = shifted(date, offset).replace("T", " ");
  const sign = offset < 0 ? "-" : "+";
  return `${text} UTC${offset ? `${sign}${pad(Math.floor(Math.abs(offset) / 60))}:${pad(Math.abs(offset) % 60)}` : ""}`;
}

/** Make an element that shows a time, and the same time in the other zone when the mouse is over it. */
export function moment(ms) {
  const text = time(ms);
  return text === "–" ? text : el("time", { datetime: new Date(Number(ms)).toISOString(), title: time(ms, !zone.isLocal) }, text);
}

/** Convert epoch milliseconds to the value of a datetime-local field in the chosen zone; invalid text to "". */
export function fieldOfTime(text) {
  if (!/^\d{1,15}$/.test(text)) return "";
  const date = new Date(Number(text));
  return shifted(date, zone.isLocal ? -date.getTimezoneOffset() : 0);
}

/** Convert the value of a datetime-local field in the chosen zone to epoch milliseconds. */
export function timeOfField(value) {
  return new Date(zone.isLocal ? value : `${value}Z`).getTime();
}

function shifted(date, minutes) {
  return new Date(date.getTime() + minutes * 60_000).toISOString().slice(0, -1);
}
