// Elements, made without markup: whatever a text holds, it stays text.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** An HTML element; `attributes` that are null or false are left out, children that are null too. */
export const element = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);

/** The same of SVG. */
export const drawn = (name, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, name), attributes, children);

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Change a text only if it differs: a screen reader is told of each change. */
export function setText(of, text) {
  if (of.textContent !== text) of.textContent = text;
}

// What steers the direction of writing, or shows nothing: a text could look as another one.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

/** A text as nodes, with such characters named instead of obeyed. */
export function written(text) {
  const nodes = [];
  let end = 0;
  for (const { 0: character, index } of text.matchAll(CONTROLS)) {
    const number = character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    nodes.push(text.slice(end, index), element("span", { class: "control" }, `U+${number}`));
    end = index + character.length;
  }
  return [...nodes, text.slice(end)];
}

/** Words for a screen reader only. */
export const unseen = (text) => element("span", { class: "unseen" }, text);

/**
 * Make a list hold one element for each item, in order. An element stays with its item's key, so that focus and what is
 * open stay too. `make(item)` gives `{element, update(item)}`; `kept` is a Map that the caller keeps for the list.
 */
export function keepList(list, kept, items, keyOf, make) {
  const keys = new Set(items.map(keyOf));
  for (const [key, one] of kept) {
    if (!keys.has(key)) {
      one.element.remove();
      kept.delete(key);
    }
  }
  let before = null;
  for (const item of items) {
    const key = keyOf(item);
    if (!kept.has(key)) kept.set(key, make(item));
    const one = kept.get(key);
    one.update(item);
    const place = before === null ? list.firstElementChild : before.nextElementSibling;
    if (place !== one.element) list.insertBefore(one.element, place);
    before = one.element;
  }
}
