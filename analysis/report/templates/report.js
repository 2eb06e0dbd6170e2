"use strict";
// Without this the page is complete; with it tables are sorted and filtered, and links open what is folded.
const value = (cell) => {
  const text = (cell?.textContent ?? "").trim().replace("−", "-").replace(/^[<[]/, "");
  const number = /^[-+]?\d[\d.,]*(e[-+]?\d+)?/i.exec(text);
  return number ? parseFloat(number[0].replace(",", "")) : text.toLowerCase();
};
const order = (a, b) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1);
const tables = [...document.querySelectorAll("main table")];
for (const table of tables) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  if (body.rows.length < 2) continue;
  for (const [place, head] of heads.entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const way = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", way < 0 ? "descending" : "ascending");
      body.append(...[...body.rows].sort((a, b) => way * order(value(a.cells[place]), value(b.cells[place]))));
    });
  }
}
const box = document.querySelector("#filter");
if (box) {
  box.closest("form").hidden = false;
  box.closest("form").addEventListener("submit", (event) => event.preventDefault());
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of tables.flatMap((table) => [...table.tBodies[0].rows])) {
      row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    }
  });
}
const show = (target, block) => {
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  target?.scrollIntoView({ block });
};
const unfold = () => location.hash && show(document.getElementById(decodeURIComponent(location.hash.slice(1))), "start");
addEventListener("hashchange", unfold);
unfold();
