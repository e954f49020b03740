// Makes elements. All text enters the page here, and only as text: the console never parses HTML.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element: el("a", {class: "x", href: "#/", on: {click}}, "text", child, …). Links must stay in the console. */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Make an SVG element. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, { on = {}, ...attributes }, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "href" && !String(value).startsWith("#")) throw new Error(`a link out of the console: ${value}`);
    if (key.startsWith("on") || key === "style") throw new Error(`${key} is code or style in an attribute`);
    if (key === "value") element.value = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  for (const [event, handler] of Object.entries(on)) element.addEventListener(event, handler);
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

/** Return a link to a page: to("/messages", {topic: "orders"}); empty parameters are left out. */
export function to(page, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "" && value !== false) query.set(name, String(value));
  }
  const text = query.toString();
  return `#${page}${text ? `?${text}` : ""}`;
}

/** Return the link *hash* with some parameters changed; an empty one is left out. */
export function changed(hash, changes) {
  const [page, query = ""] = hash.slice(1).split(/\?(.*)/s);
  return to(page, { ...Object.fromEntries(new URLSearchParams(query)), ...changes });
}

/** Make a table of *rows* (each a list of cells) under *heads*. A head [text, class] gives its class to its cells. */
export function table(caption, heads, rows, { empty = "Nothing here." } = {}) {
  const columns = heads.map((head) => (Array.isArray(head) ? head : [head, ""]));
  const body = rows.map((row) => el("tr", {}, row.map((cell, i) => el("td", { class: columns[i][1] || null }, cell))));
  const hint = el("tr", { class: "empty" }, el("td", { colspan: columns.length }, empty));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {},
      el("caption", { class: "unseen" }, caption),
      el("thead", {}, el("tr", {}, columns.map(([text, kind]) => el("th", { scope: "col", class: kind || null }, text || el("span", { class: "unseen" }, "Actions"))))),
      el("tbody", {}, body.length ? body : hint)));
}

/** Make a labelled field of a form. */
export function field(label, input, hint) {
  return el("label", { class: "field" }, el("span", {}, label), input, hint && el("small", {}, hint));
}

/** Make a select element of [value, text] pairs. */
export function choice(name, options, chosen, on = {}) {
  return el("select", { name, on },
    options.map(([value, text]) => el("option", { value, selected: String(value) === String(chosen) }, text)));
}

/** Make a grid of terms and values. Pairs whose value is null are left out. */
export function facts(pairs) {
  const there = pairs.filter(([, value]) => value !== null && value !== undefined);
  return el("dl", { class: "facts" }, there.map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value))));
}
