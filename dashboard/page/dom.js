// The few helpers that build the page. Text always becomes a text node: a name can
// hold anything.

export function h(tag, attributes, ...children) {
  const n = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes ?? {})) n.setAttribute(k, v);
  n.append(...children.filter((c) => c !== undefined && c !== null));
  return n;
}

// card is a box with a heading, and a paragraph that can be set.
export function card(cls, title) {
  const note = h("p");
  const box = h("section", { class: "card " + cls }, h("h3", null, title), note);
  return { box, note };
}

// tile shows one number. set(value, unit, share, tone): share of 1 fills the bar.
export function tile(title, key) {
  const value = h("output", { "data-value": key });
  const fill = h("i");
  const bar = h("div", { class: "bar", hidden: "" }, fill);
  const box = h("section", { class: "card tile" }, h("h3", null, title), value, bar);
  return {
    box,
    set(text, unit, share, tone = "") {
      value.replaceChildren(text, unit ? h("small", null, unit) : "");
      box.className = "card tile " + tone;
      bar.hidden = share === undefined;
      bar.className = share >= 0.995 ? "bar full" : "bar";
      fill.style.width = Math.min(100, Math.max(0, (share ?? 0) * 100)) + "%";
    },
  };
}

export function legend(names) {
  const values = names.map(() => h("b"));
  const items = names.map((name, i) => h("span", null, h("i", { class: "k" + i }), name + " ", values[i]));
  const box = h("div", { class: "legend" }, ...items.reverse());
  return { box, set: (texts) => texts.forEach((t, i) => { values[i].textContent = t; }) };
}

// rows fills a list: each row has a name, a number, a share of the longest, a note.
export function rows(list, items, none) {
  if (!items.length) return list.replaceChildren(h("li", { class: "none" }, none));
  const most = Math.max(...items.map((i) => i.value), 1e-9);
  list.replaceChildren(...items.map((item) => {
    const share = h("span", { class: "share" });
    share.style.width = (100 * item.value) / most + "%";
    return h("li", null, share, h("span", { class: "name" }, item.name), h("span", { class: "num" }, item.text),
      item.note ? h("span", { class: "note" }, item.note) : null);
  }));
}

// table fills a table; a cell is text or a node, numbers go to the right.
export function table(place, heads, lines) {
  const cls = (i) => (heads[i].startsWith(">") ? { class: "n" } : null);
  place.replaceChildren(h("div", { class: "scroll" }, h("table", null,
    h("thead", null, h("tr", null, ...heads.map((t, i) => h("th", cls(i), t.replace(/^>/, ""))))),
    h("tbody", null, ...lines.map((line) => h("tr", null, ...line.map((c, i) => h("td", { ...cls(i), "data-label": heads[i].replace(/^>/, "") }, c))))))));
}

export const tag = (text, tone) => h("span", { class: "tag " + (tone ?? "") }, text);
