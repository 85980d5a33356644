// Elements without HTML: whatever a store holds becomes text, never markup.

import { plain } from "./format.js";

// Makes an element. Of the properties, `class`, `on…` and `data` are what they say, `text` is its text, and all
// others are attributes; null and false leave one out. Children are elements or texts.
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "text") element.textContent = plain(value);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(element, child);
    else element.append(child instanceof Node ? child : plain(child));
  }
}

// A name out of the store: text that can't turn the direction of what stands beside it.
export function name(text, properties) {
  const shown = text === null || text === undefined || text === "" ? "–" : text;
  return h("bdi", { class: "name", ...properties, text: shown });
}

// Sets a text only if it changed, so that selections and screen readers aren't disturbed.
export function setText(element, text) {
  const shown = plain(text);
  if (element.textContent !== shown) element.textContent = shown;
}

// Sets or removes an attribute only if it changed.
export function setAttribute(element, attribute, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(attribute)) element.removeAttribute(attribute);
  } else if (element.getAttribute(attribute) !== String(value)) {
    element.setAttribute(attribute, String(value));
  }
}

export function setClass(element, className) {
  if (element.className !== className) element.className = className;
}

// Makes the children of `parent` those of `items`, by key: an element stays the same one as long as its key
// does, and so keeps its focus. `create(item)` makes one and `update(element, item)` brings it up to date.
export function list(parent, items, keyOf, create, update) {
  const known = (parent.keyed ??= new Map());
  const wanted = new Set();
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    if (wanted.has(key)) continue;
    wanted.add(key);
    let element = known.get(key);
    if (!element) {
      element = create(item);
      known.set(key, element);
    }
    update?.(element, item);
    if (element === at) at = at.nextElementSibling;
    else parent.insertBefore(element, at);
  }
  for (const [key, element] of known) {
    if (!wanted.has(key)) {
      element.remove();
      known.delete(key);
    }
  }
}

// Replaces all children.
export function fill(parent, ...children) {
  parent.keyed = undefined;
  parent.replaceChildren();
  add(parent, children);
}

// What is shown where there is nothing to show.
export function empty(title, ...more) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title", text: title }), more.map((line) => h("p", {}, line)));
}
