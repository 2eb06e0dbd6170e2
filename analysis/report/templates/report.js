"use strict";
// Without this the page is complete; with it tables are sorted and filtered, and links open what is folded.
const value = (cell) => {
  const text = (cell?.textContent ?? "").trim().replace("−", "-").replace("<", "");
  const number = /^[-+]?\d[\d.,]*(e[-+]?\d+)?/i.exec(text);
  return number ? parseFloat(number[0].replace(",", "")) : text.toLowerCase();
};
const order = (a, b) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1);
for (const table of document.querySelectorAll("table")) {
  const bodies = [...table.tBodies].filter((body) => !body.classList.contains("group"));
  const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
  if (bodies.length !== 1 || bodies[0].rows.length < 2) continue;
  for (const [place, head] of heads.entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const way = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", way < 0 ? "descending" : "ascending");
      bodies[0].append(...[...bodies[0].rows].sort((a, b) => way * order(value(a.cells[place]), value(b.cells[place]))));
    });
  }
}
const tables = [...document.querySelectorAll("table.verdicts, table.cells, table.settings, table.runs")];
const box = document.querySelector("#filter");
const filter = () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const table of tables) {
    const title = table.closest(".scroll")?.getAttribute("aria-label").toLowerCase() ?? "";
    for (const row of [...table.tBodies].flatMap((body) => [...body.rows])) {
      const text = `${title} ${row.textContent.toLowerCase()}`;
      row.hidden = row.querySelector("[scope=rowgroup]") === null && !words.every((word) => text.includes(word));
    }
  }
};
if (box && tables.length) {
  box.closest("form").hidden = false;
  box.addEventListener("input", filter);
  box.closest("form").addEventListener("submit", (event) => event.preventDefault());
}
const show = (target) => {
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  target?.scrollIntoView({ block: "center" });
};
const unfold = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();

let chosen = []; // what is said of the chosen row
const tellChosen = () => say(...chosen);
// Marks say what they are: pointed at, or one after the other with the arrow keys.
const line = document.querySelector("#says");
const say = (...parts) => {
  line.replaceChildren(...parts);
  line.hidden = !parts.length;
  line.removeAttribute("style");
};
const sayOf = (mark) => {
  say(mark.dataset.says);
  const box = mark.getBoundingClientRect();
  const below = box.bottom + 8 + line.offsetHeight < innerHeight;
  line.style.left = `${Math.max(8, Math.min(box.left, innerWidth - line.offsetWidth - 8))}px`;
  line.style.top = `${below ? box.bottom + 8 : Math.max(8, box.top - 8 - line.offsetHeight)}px`;
  line.style.bottom = "auto";
};
const marks = new Map();
for (const picture of document.querySelectorAll(".picture")) {
  const own = [...picture.querySelectorAll("svg *:not(svg) > title")].map((title) => {
    const mark = title.parentElement;
    mark.dataset.says = title.textContent;
    title.remove(); // or the browser would say it a second time
    return mark;
  });
  if (!own.length) continue;
  marks.set(picture, own);
  picture.setAttribute("aria-description", `${own.length} marks: the arrow keys go from one to the next`);
  let at = -1;
  const leave = () => {
    own[at]?.classList.remove("at");
    tellChosen();
  };
  picture.addEventListener("pointerover", (event) => {
    if (event.target.dataset?.says) sayOf(event.target);
    else leave();
  });
  picture.addEventListener("pointerleave", leave);
  picture.addEventListener("blur", leave);
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") leave();
    if (!step) return;
    event.preventDefault();
    own[at]?.classList.remove("at");
    at = (at + step + own.length) % own.length;
    own[at].classList.add("at");
    own[at].scrollIntoView({ block: "nearest", inline: "nearest" });
    sayOf(own[at]);
  });
}

// A row of a verdict leads to its marks and its cells.
const jump = (text, target) => {
  const button = document.createElement("button");
  button.type = "button";
  button.append(text);
  button.addEventListener("click", () => show(target()));
  return button;
};
const choose = (row) => {
  const again = row?.classList.contains("chosen");
  for (const one of document.querySelectorAll(".chosen")) one.classList.remove("chosen");
  chosen = [];
  tellChosen();
  if (!row || again) return;
  row.classList.add("chosen");
  const name = row.dataset.mark;
  const places = [];
  for (const [picture, own] of marks) {
    const its = own.filter((mark) => mark.dataset.says.startsWith(`${name}:`) || mark.dataset.says.startsWith(`${name},`));
    its.forEach((mark) => mark.classList.add("chosen"));
    if (its.length) picture.querySelector("svg").classList.add("chosen");
    if (its.length && getComputedStyle(picture).display !== "none") places.push([picture.getAttribute("aria-label"), () => picture]);
  }
  const cells = [...document.querySelectorAll("table.cells tbody tr")].filter(
    (one) => `${one.cells[3].textContent} · ${one.cells[2].textContent}` === name,
  );
  const close = jump("×", () => undefined);
  close.setAttribute("aria-label", "Show all again");
  close.addEventListener("click", () => choose(null));
  cells.forEach((one) => one.classList.add("chosen"));
  if (cells.length) places.push([`${cells.length} cells`, () => cells[0]]);
  chosen = [`${name}: `, ...places.flatMap(([text, target]) => [jump(text, target), " "]), close];
  tellChosen();
};
for (const row of document.querySelectorAll("tr[data-mark]")) {
  row.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (event.target.closest("summary")) return;
    if (link?.classList.contains("self") || String(getSelection())) return;
    if (!link || !row.classList.contains("chosen")) choose(row); // a link leads to the picture as well
  });
}
addEventListener("keydown", (event) => event.key === "Escape" && choose(null));
