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

// A row of a verdict leads to its marks and its cells.
const jump = (text, target) => {
  const button = document.createElement("button");
  button.type = "button";
  button.append(text);
  button.addEventListener("click", () => show(target()));
  return button;
};
const line = document.querySelector("#says");
const choose = (row) => {
  const again = row?.classList.contains("chosen");
  for (const one of document.querySelectorAll(".chosen")) one.classList.remove("chosen");
  line.hidden = !row || again;
  if (line.hidden) return;
  row.classList.add("chosen");
  const name = row.dataset.mark;
  const places = [];
  for (const picture of document.querySelectorAll(".picture")) {
    const titles = [...picture.querySelectorAll("svg *:not(svg) > title")];
    const its = titles.filter(({ textContent }) => textContent.startsWith(`${name}:`) || textContent.startsWith(`${name},`));
    its.forEach((title) => title.parentElement.classList.add("chosen"));
    if (!its.length) continue;
    picture.querySelector("svg").classList.add("chosen");
    places.push([picture.getAttribute("aria-label"), () => picture]);
  }
  const cells = [...document.querySelectorAll("table.cells tbody tr")].filter(
    (one) => `${one.cells[3].textContent} · ${one.cells[2].textContent}` === name,
  );
  cells.forEach((one) => one.classList.add("chosen"));
  if (cells.length) places.push([`${cells.length} cells`, () => cells[0]]);
  const close = jump("×", () => undefined);
  close.setAttribute("aria-label", "Show all again");
  close.addEventListener("click", () => choose(null));
  line.replaceChildren(`${name}: `, ...places.flatMap(([text, target]) => [jump(text, target), " "]), close);
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
