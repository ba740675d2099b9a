"use strict";
// A line and its instructions light up together; a click brings the other side into view.
addEventListener("DOMContentLoaded", () => {
  const head = document.querySelector("header");
  document.documentElement.style.setProperty("--head", head.offsetHeight + "px");
  const rows = new Map();
  for (const row of document.querySelectorAll("tr[data-l]")) {
    const of = row.dataset.l;
    if (!rows.has(of)) rows.set(of, []);
    rows.get(of).push(row);
  }
  let lit = [];
  const light = (row) => {
    for (const r of lit) r.classList.remove("on");
    lit = row ? rows.get(row.dataset.l) : [];
    for (const r of lit) r.classList.add("on");
  };
  const rowOf = (event) => event.target.closest("tr[data-l]");
  document.addEventListener("mouseover", (event) => light(rowOf(event)));
  document.addEventListener("click", (event) => {
    const row = rowOf(event);
    if (!row) return;
    const side = row.closest("section");
    const others = rows.get(row.dataset.l).filter((r) => r.closest("section") !== side);
    const heaviest = others.sort((a, b) => b.dataset.w - a.dataset.w)[0];
    if (heaviest) heaviest.scrollIntoView({ block: "center" });
  });
  for (const section of document.querySelectorAll("section")) {
    const weighed = [...section.querySelectorAll("tr[data-w]")];
    const hottest = weighed.sort((a, b) => b.dataset.w - a.dataset.w)[0];
    if (hottest) section.scrollTop = hottest.offsetTop - section.clientHeight / 3;
  }
});
