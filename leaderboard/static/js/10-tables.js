// Tables: what a cell shows, sorting, copying, and how many columns are out of sight.
const MISSING = "—";

// The text of a cell without what is for screen readers only, buttons and drawings.
function shown(cell) {
  const copy = cell.cloneNode(true);
  const abs = cell.closest("table").classList.contains("abs");
  const less = cell.closest(".js .heat") ? (abs ? "b" : "i") : null;
  $$(".hidden, .pin, svg, .scale" + (less ? ", td " + less : ""), copy).forEach((one) => one.remove());
  if (less && $("b", copy) && $("i", copy)) $(less, copy).remove();
  return copy.textContent.replace(/\s+/g, " ").trim();
}

// A number to sort by, or text; null for what is missing.
function sortable(cell) {
  if (!cell) return null;
  if (cell.dataset.v) return Number(cell.dataset.v);
  const text = shown(cell);
  if (text === "" || text[0] === MISSING) return null;
  const number = /^\[?([+−-]?[\d,]*\.?\d+)/.exec(text);
  return number && cell.tagName === "TD" ? Number(number[1].replace("−", "-").replace(/,/g, "")) : text.toLowerCase();
}

// The cell of a row below a header cell; null where a cell spans several columns.
function below(row, column) {
  let place = 0;
  for (const cell of row.cells) {
    if (place === column && cell.colSpan === 1) return cell;
    place += cell.colSpan;
    if (place > column) return null;
  }
  return null;
}

const keyOf = (head) => (head.dataset.k && !/^t\d+$/.test(head.dataset.k) ? head.dataset.k : shown(head).toLowerCase());
const heads = (table) => Array.from(table.tHead.rows[0].cells);

// Rows in the order of a column: "-sw" is descending; missing last both ways, equal ones as built.
function ordered(rows, column, down) {
  const keyed = rows.map((row, place) => [sortable(below(row, column)), place, row]);
  keyed.sort(([a, i], [b, j]) => {
    if (a === null || b === null) return (a === null) - (b === null) || i - j;
    const sign = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    return (down ? -sign : sign) || i - j;
  });
  return keyed.map(([, , row]) => row);
}

// Header buttons; `choose(key)` receives the one that was pressed.
function sorting(table, choose) {
  for (const head of heads(table)) {
    if (head.querySelector(".scale, a")) continue;
    const click = () => choose(keyOf(head), !!head.dataset.k && head.classList.contains("n"));
    // browsers leave a button alone that is half in sight
    const button = make("button", { type: "button", on: { click, focus: () => head.scrollIntoView({ block: "nearest", inline: "nearest" }) } });
    button.append(...head.childNodes);
    head.append(button);
  }
}

// Mark the one header that a table is sorted by.
function marked(table, sort) {
  for (const head of heads(table)) {
    const key = keyOf(head);
    if (sort && (sort === key || sort === "-" + key)) head.setAttribute("aria-sort", sort[0] === "-" ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
}

// A press sorts numbers from above first, the second the other way, the third as built.
const turned = (sort, key, number) => {
  const [first, second] = number ? ["-" + key, key] : [key, "-" + key];
  return sort === first ? second : sort === second ? "" : first;
};

const TEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "−": "$-$", "–": "--", "—": "---" };
const tex = (text) => text.replace(/[\\&%$#_{}~^−–—]/g, (one) => TEX[one] || "\\" + one);
const writers = {
  LaTeX: (head, body, about) => {
    const line = (cells) => cells.map(tex).join(" & ") + " \\\\";
    const lines = body.map(({ cells, best }) => (best ? "\\textbf{" + tex(cells[0]) + "} & " + line(cells.slice(1)) : line(cells)));
    return ["% " + about.join("\n% "), "\\begin{table}", "\\caption{" + tex(about[0]) + "}", "\\begin{tabular}{l" + "r".repeat(head.length - 1) + "}",
      "\\toprule", line(head), "\\midrule", ...lines, "\\bottomrule", "\\end{tabular}", "\\end{table}", ""].join("\n");
  },
  CSV: (head, body, about) => {
    const cell = (text) => {
      const safe = /^[=+@-](?![\d.]+$)/.test(text) ? "'" + text : text;
      return /[",\n]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
    };
    const plain = (text) => cell(text.replace(/−/g, "-"));
    return [...about.map((one) => "# " + one), ...[head, ...body.map((one) => one.cells)].map((cells) => cells.map(plain).join(",")), ""].join("\n");
  },
  Markdown: (head, body, about) => {
    const line = (cells) => "| " + cells.map((text) => text.replace(/[\\|\x60*_<>[\]]/g, "\\$&")).join(" | ") + " |";
    const rows = body.map(({ cells, best }) => line(cells).replace(/^\| (.*?) \|/, best ? "| **$1** |" : "| $1 |"));
    return [line(head), "|---|" + "---:|".repeat(head.length - 1), ...rows, "", ...about, ""].join("\n");
  },
};

// The table as it is seen now: visible rows, its columns without drawings.
function written(table, kind, about) {
  const columns = heads(table).map((head, place) => [head, place]).filter(([head]) => head.offsetWidth && !$(".scale", head));
  const rows = $$("tbody tr[data-id]", table).filter((row) => !row.hidden);
  const body = rows.map((row) => ({
    cells: columns.map(([, place]) => { const cell = below(row, place); return cell ? shown(cell).replace(/ ●$/, "") : MISSING; }),
    best: !!$(".dot", row),
  }));
  return writers[kind](columns.map(([head]) => shown(head)), body, about);
}

const copy = (text, done) => navigator.clipboard.writeText(text).then(() => say(done), () => say("The browser refuses to copy"));

// Say how many columns are out of sight to the right.
for (const box of $$(".scroll")) {
  const table = $("table", box);
  if (!table?.tHead) continue;
  const more = make("p", { class: "more", hidden: true });
  box.after(more);
  const look = () => {
    const end = box.getBoundingClientRect().right + 1;
    const left = heads(table).filter((head) => head.getBoundingClientRect().right > end).length;
    more.hidden = !left;
    more.textContent = `${left} more column${left > 1 ? "s" : ""} →`;
  };
  box.onscroll = look;
  addEventListener("resize", look);
  addEventListener("change", look);
  look();
}

// Grids without further controls: sorting only.
for (const table of $$("table.grid")) {
  const body = table.tBodies[0];
  const built = Array.from(body.rows);
  let sort = "";
  sorting(table, (key) => {
    sort = turned(sort, key, key !== "system");
    const column = heads(table).findIndex((head) => keyOf(head) === key);
    body.append(...(sort ? ordered(built, column, sort[0] === "-") : built));
    marked(table, sort);
    say(sort ? `sorted by ${key}, ${sort[0] === "-" ? "descending" : "ascending"}` : "in the order of the page");
  });
}
