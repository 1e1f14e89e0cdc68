// Values that lie in files of their own: RB.put hands them over, fetched(path, key) asks for them once.
const handed = new Map(), asked = new Map();
window.RB = { put(key, value) { handed.set(key, value); } };
function fetched(path, key) {
  if (!asked.has(path)) {
    asked.set(path, new Promise((done, fail) => {
      document.head.append(make("script", { src: path, on: { load: done, error: () => { asked.delete(path); fail(new Error(path)); } } }));
    }));
  }
  return asked.get(path).then(() => handed.get(key));
}

// Percent and points with one decimal from millionths.
const signed = (v) => { const t = (Math.abs(v) / 1e4).toFixed(1); return (t === "0.0" ? "" : v < 0 ? "\u2212" : "+") + t; };
const plain = (v) => signed(v).replace("+", "");
const many = (n) => n.toLocaleString("en");

// A table from text; columns that begin with "#" are numbers.
function sheet(caption, columns, rows) {
  const cell = (tag, column, inside, more) => make(tag, { ...more, class: column[0] === "#" ? "n" : null }, inside);
  const head = make("tr", {}, ...columns.map((c) => cell("th", c, c.replace("#", ""), { scope: "col" })));
  const body = rows.map((row) => make("tr", {}, ...row.map((v, i) => i ? cell("td", columns[i], v) : cell("th", columns[i], v, { scope: "row" }))));
  return make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption },
    make("table", {}, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...body)));
}

for (const block of $$("pre.copy")) {
  const button = make("button", { type: "button", on: { click: () => {
    navigator.clipboard.writeText(block.textContent).then(() => say("Copied"), () => say("Copying failed; select the text"));
  } } }, `Copy the ${block.title || "command"}`);
  block.after(button);
}

// Hover or focus on a line's name, or on a row of the table of points, brings it out in the drawings.
for (const holder of $$(".key, .points")) {
  const scope = holder.matches(".key") ? holder.nextElementSibling : holder.parentElement.previousElementSibling;
  for (const item of $$("[data-k]", holder)) {
    const mark = (on) => {
      scope.classList.toggle("focus", on);
      for (const one of [item, ...$$(`[data-k="${item.dataset.k}"]`, scope)]) one.classList.toggle("hot", on);
    };
    if (holder.matches(".key")) item.tabIndex = 0;
    for (const [event, on] of [["mouseenter", true], ["mouseleave", false], ["focusin", true], ["focusout", false]]) item.addEventListener(event, () => mark(on));
  }
}

(function runPage() {
  const held = data("run-data");
  if (!held) return;
  for (const item of $$(".queries li")) {
    const name = item.dataset.task, asks = held.subsets[name], key = `${held.id}-${name}`;
    if (!asks) continue;
    const button = make("button", { type: "button", "aria-expanded": "false" }, "Show values");
    let table = null;
    button.addEventListener("click", async () => {
      if (!table) {
        try {
          const values = await fetched(`${held.data}q/${key}.js`, key), ids = await fetched(`${held.data}ids/${asks}.js`, asks);
          const names = Object.keys(values.measures), first = values.measures[names[0]];
          const order = ids.map((_, i) => i).sort((a, b) => first[a] - first[b] || a - b).slice(0, 200);
          const cut = ids.length > 200 ? `, the lowest 200 of ${many(ids.length)}` : "";
          table = sheet(`${item.firstElementChild.textContent}: percent, lowest first${cut}`, ["Query", ...names.map((n) => "#" + n)], order.map((i) => [ids[i], ...names.map((n) => plain(100 * values.measures[n][i]))]));
          item.append(table);
          table.hidden = true;
        } catch (error) { say("The values cannot be read; the CSV has them"); return; }
      }
      table.hidden = !table.hidden;
      button.setAttribute("aria-expanded", String(!table.hidden));
      button.textContent = table.hidden ? "Show values" : "Hide values";
    });
    item.append(button);
  }
})();

(function comparePage() {
  const held = data("compare-data");
  if (!held) return;
  const out = $("#pair"), by = new Map(held.rows.map((row) => [row.slug, row]));
  const pick = (name) => make("select", { on: { change: () => show(true) } }, ...held.rows.map((row) => make("option", { value: row.slug }, row.name)));
  const a = pick(), b = pick(), box = make("div", {});
  out.append(make("p", { class: "bar" }, make("label", {}, "First", a), make("label", {}, "Second", b)), box);
  out.hidden = false;

  const space = new DOMParser().parseFromString("<svg>", "text/html").body.firstChild.namespaceURI;
  const drawn = (tag, given, ...inside) => {
    const one = document.createElementNS(space, tag);
    for (const [key, value] of Object.entries(given)) one.setAttribute(key, value);
    one.append(...inside);
    return one;
  };

  // First minus second by language: dot and interval, filled where significant; in grey what its own test can miss.
  function forest(rows) {
    const most = Math.max(1e4, ...rows.flatMap((row) => [Math.abs(row[2]), Math.abs(row[3])]));
    const x = (v) => (252 + 136 * v / most).toFixed(1), high = 24 * rows.length + 24;
    const parts = [];
    rows.forEach(([name, middle, low, top, , clear, least], i) => {
      const y = 24 * i + 12, band = Math.min(least, most);
      if (band) parts.push(drawn("rect", { class: "band", x: x(-band), y: y - 10, width: x(band) - x(-band), height: 20 }));
      parts.push(drawn("text", { x: 96, y: y + 4, "text-anchor": "end" }, name.length > 15 ? name.slice(0, 14) + "\u2026" : name),
        drawn("path", { d: `M${x(low)} ${y}H${x(top)}` }), drawn("circle", { cx: x(middle), cy: y, r: 4, class: clear ? "" : "hollow" }));
    });
    parts.push(drawn("line", { class: "zero", x1: x(0), x2: x(0), y1: 0, y2: high - 24 }));
    for (const v of [-most, 0, most]) parts.push(drawn("text", { x: x(v), y: high - 6, "text-anchor": "middle" }, signed(v)));
    return drawn("svg", { class: "forest", width: 404, height: high, viewBox: `0 0 404 ${high}`, role: "img", "aria-label": "Differences by task; the table below has the numbers" }, ...parts);
  }

  async function queries(one, other, where) {
    const [name, title] = held.subsets[$("select", where).value];
    const of = (row) => fetched(`${held.data}q/${row.id}-${name}.js`, `${row.id}-${name}`);
    try {
      const first = await of(one), second = await of(other);
      const ids = await fetched(`${held.data}ids/${first.ids}.js`, first.ids);
      const [l, r] = [first.measures[held.measure], second.measures[held.measure]];
      const order = ids.map((_, i) => i).sort((i, j) => (l[j] - r[j]) - (l[i] - r[i]));
      const rows = [...order.filter((i) => l[i] > r[i]).slice(0, 15), ...order.filter((i) => l[i] < r[i]).slice(-15)];
      const old = $(".scroll", where);
      if (old) old.remove();
      where.append(sheet(`${title}: queries that ${one.name} gains most and loses most against ${other.name}, ${held.measure}, percent`, ["Query", "#" + one.name, "#" + other.name, "#Difference"], rows.map((i) => [ids[i], plain(100 * l[i]), plain(100 * r[i]), signed(100 * (l[i] - r[i]))])));
    } catch (error) { say("The values cannot be read; the rows' pages have them as CSV"); }
  }

  async function show(write) {
    const one = by.get(a.value), other = by.get(b.value);
    if (write) history.replaceState(null, "", `#a=${one.slug}&b=${other.slug}`);
    if (one === other) { box.replaceChildren(make("p", {}, "Choose two different systems.")); return; }
    const file = (row) => fetched(`${held.data}pairs/${row.id}.js`, `pairs-${row.id}`);
    let left, right;
    try { [left, right] = [await file(one), await file(other)]; } catch (error) { say("The pair cannot be read; the table has it"); return; }
    if (a.value !== one.slug || b.value !== other.slug) return;
    const back = !left.pairs[other.id], pair = back ? right.pairs[one.id] : left.pairs[other.id];
    const turn = (v) => v && back ? [-v[0], -v[2], -v[1], ...v.slice(3)] : v;
    const [d, low, top, p, clear, least, won, tied, lost, n] = turn(pair.whole);
    const [better, worse] = d < 0 ? [other, one] : [one, other];
    const verdict = clear ? `${better.name} is significantly better than ${worse.name}${low < 0 && top > 0 ? " (although the interval includes 0)" : ""}` : `${one.name} and ${other.name} do not differ significantly`;
    const tasks = held.tasks.map((name, i) => [name, turn(pair.tasks[i])]).filter((row) => row[1]).map(([name, v]) => [name, ...v]);
    const keys = [...new Set([...Object.keys(left.settings), ...Object.keys(right.settings)])].filter((key) => left.settings[key] !== right.settings[key]);
    const choice = make("select", {}, ...held.subsets.map(([, title], i) => make("option", { value: i }, title)));
    const where = make("div", {}, make("p", { class: "bar" }, make("label", {}, "Task", choice), make("button", { type: "button", on: { click: () => queries(one, other, where) } }, "Show queries gained and lost")));
    box.replaceChildren(...[
      pair.doubts.length ? make("div", { class: "warn", role: "note" }, make("strong", {}, "Is the comparison fair?"), make("ul", {}, ...pair.doubts.map((line) => make("li", {}, line)))) : "",
      make("p", { class: "lead" }, make("strong", {}, verdict), `: ${signed(d)} ${held.measure} points (first minus second), ${low === null ? "" : `95\u00a0% [${plain(low)}, ${plain(top)}], `}${p} corrected; ` + (least === null ? "" : `a true difference of ${plain(least)} points is detected with 80 % power; `) + `${many(back ? lost : won)} queries won, ${many(tied)} tied, ${many(back ? won : lost)} lost, of ${many(n)}.`),
      make("h2", {}, "By language or task"), make("figure", {}, forest(tasks)),
      sheet("First minus second, points; p corrected over all pairs and tasks. Filled: significant; grey: true differences found with less than 80 % power", ["Task", "#Difference", "#95 % interval", "#p", "#Detectable"], tasks.map(([name, v, l, t, q, , least]) => [name, signed(v), `[${plain(l)}, ${plain(t)}]`, q, least === null ? MISSING : plain(least)])),
      make("h2", {}, "What differs in the settings"),
      keys.length ? sheet("Settings with other values", ["Setting", one.name, other.name], keys.map((key) => [key, left.settings[key] || "\u2014", right.settings[key] || "\u2014"])) : make("p", {}, "The results record no difference."),
      make("h2", {}, "Queries gained and lost"), where,
    ]);
    say(verdict);
  }

  function read() {
    const given = new URLSearchParams(location.hash.slice(1)), rows = held.rows.map((row) => row.slug);
    a.value = by.has(given.get("a")) ? given.get("a") : rows[0];
    b.value = by.has(given.get("b")) ? given.get("b") : rows.find((row) => row !== a.value);
    show(false);
  }
  addEventListener("hashchange", read);
  read();
})();
