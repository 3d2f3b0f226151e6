// Opens the details that a link leads into, and all of them on paper.
const unfold = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const details = target && target.closest("details");
  if (details) { details.open = true; target.scrollIntoView(); }
};
addEventListener("hashchange", unfold);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
unfold();

// Sorts a table by a column: by the first number of a cell's first line, or else by its text.
const key = (cell) => {
  const text = (cell ? (cell.querySelector("span") || cell).textContent : "").trim();
  const number = text.replace("\u2212", "-").replace(/\u2009/g, "").match(/^[+<≤≈ε= ]*(-?\d+(\.\d+)?(e-?\d+)?)/);
  return { text, number: number ? Number(number[1]) : NaN };
};
const before = (a, b) => {
  if (Number.isNaN(a.number) !== Number.isNaN(b.number)) return Number.isNaN(a.number) ? 1 : -1;
  return a.number - b.number || a.text.localeCompare(b.text);
};
document.querySelectorAll("table").forEach((table) => {
  const body = table.tBodies[0];
  if (body.rows.length < 3) return;
  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending";
      const rows = Array.from(body.rows, (row) => [key(row.cells[column]), row]);
      rows.sort((a, b) => (falling ? before(b[0], a[0]) : before(a[0], b[0])));
      body.append(...rows.map((row) => row[1]));
      table.querySelectorAll("[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
    });
  });
});
