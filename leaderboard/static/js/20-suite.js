// The page of a suite: filter, sort, pin, measure, baseline and view. Statistics are the page's; nothing is tested here.
(function suite() {
  const held = data("board-data");
  if (!held) return;
  const board = $("#board"), heat = $("#heat"), all = [...heads(board), ...heads(heat)];
  const ui = {};
  for (const one of $$(".bar [id]")) ui[one.id] = one;
  const at = (key) => heads(board).findIndex((head) => head.dataset.k === key);
  const scoreAt = at("score"), scoreName = shown(heads(board)[scoreAt]), total = held.ids.length;
  const rows = held.ids.map((id, place) => {
    const [main, map] = [board, heat].map((table) => $(`tr[data-id="${id}"]`, table));
    const ranked = place < held.ranked;
    const cells = ranked ? [below(main, scoreAt), below(main, at("interval"))] : null;
    return { id, place, ranked, name: held.names[place], main, map, cells, built: ranked && [...cells.map((one) => one.textContent), cells[0].dataset.v] };
  });
  const places = rows.filter((one) => one.ranked);
  const byId = new Map(rows.map((row) => [row.id, row]));
  const usual = { sort: "", pin: [], base: held.base, view: "", fill: "", measure: held.measure, q: "" };
  let state = usual;
  const pinned = (row) => state.pin.includes(row.id);

  // Difference, both ends, corrected p and what is detectable; null where a row is not on this page.
  function pair(one, other) {
    if (!held.pairs || one === other) return null;
    const [a, b] = [one, other].sort((i, j) => i - j);
    const found = held.pairs[a * held.ranked - (a * (a + 1)) / 2 + b - a - 1];
    return a === one ? found : [-found[0], -found[2], -found[1], found[3], found[4]];
  }

  function scores() {
    const values = held.values[state.measure], ground = byId.get(state.pin[0]), same = state.measure === held.measure;
    for (const row of places) {
      const [score, interval] = row.cells;
      let value = values[row.place][0];
      row.main.classList.toggle("pinned", pinned(row));
      if (ground && value !== null) value -= values[ground.place][0];
      const found = ground && same && pair(row.place, ground.place);
      score.textContent = same && !ground ? row.built[0] : value === null ? MISSING : points(value, !!ground);
      score.dataset.v = same && !ground ? row.built[2] : value === null ? "" : value / 1e6;
      interval.textContent = same && !ground ? row.built[1] : found ? `[${points(found[1])}, ${points(found[2])}]${found[3] > 50000 ? " n.s." : ""}` : MISSING;
      score.classList.toggle("within", Math.abs(value) < found?.[4]);
    }
    $("button", heads(board)[scoreAt]).textContent = ground ? `Difference from ${ground.name}, points` : same ? scoreName : `${held.headline}, ${state.measure}, %`;
  }

  const bin = (share) => Math.min(6, Math.max(0, Math.floor(7 * share + 1e-9)));

  function colour() {
    const values = held.values[state.measure], base = byId.get(state.base), width = held.tasks.length;
    const bits = state.measure === held.measure && held.clear[state.base];
    for (const row of rows) {
      for (let task = 0; task < width; task++) {
        const value = values[row.place][task + 1], ground = base ? values[base.place][task + 1] : null;
        if (value === null) continue;
        const inside = [make("i", {}, points(value))];
        let classes = "n a" + bin((value - held.low) / (held.high - held.low));
        if (ground !== null) {
          inside.unshift(make("b", {}, points(value - ground, true)), " ");
          if (row !== base) classes += ` d${bin((value - ground + held.limit) / (2 * held.limit))} ${bits && bits[row.place * width + task] === "1" ? "s" : "u"}`;
        }
        row.map.cells[task + 1].className = classes;
        row.map.cells[task + 1].replaceChildren(...inside);
      }
    }
  }

  // The same order in both tables: ranked rows first, pinned ones before the others.
  function arrange() {
    const key = state.sort.replace(/^-/, ""), words = state.q.toLowerCase().split(/\s+/);
    const table = [board, heat].find((one) => heads(one).some((head) => keyOf(head) === key));
    let order = rows.map((row) => (table === heat ? row.map : row.main));
    if (table) order = ordered(order, heads(table).findIndex((head) => keyOf(head) === key), state.sort[0] === "-");
    order = order.map((one) => byId.get(one.dataset.id));
    const first = (row) => (row.ranked ? 0 : 9) - (pinned(row) ? 3 - state.pin.indexOf(row.id) : 0);
    order.sort((a, b) => first(a) - first(b));
    for (const row of order) {
      for (const one of [row.main, row.map]) {
        one.parentNode.append(one);
        one.hidden = !words.every((word) => held.about[row.place].includes(word)) && !pinned(row);
      }
    }
    [board, heat].forEach((one) => marked(one, state.sort));
    return order.filter((row) => !row.main.hidden).length;
  }

  function draw(before) {
    const other = (...keys) => keys.some((key) => `${before[key]}` !== `${state[key]}`);
    if (other("measure", "pin")) scores();
    if (other("measure", "base")) colour();
    const same = state.measure === held.measure, abs = !!state.view || !state.base;
    heat.classList.toggle("abs", abs);
    heat.classList.toggle("full", !!state.fill);
    $("#by-gap").hidden = abs;
    $("#by-value").hidden = !abs;
    $("#view").textContent = state.measure + (abs ? ", percent." : `, difference from ${byId.get(state.base).name} in points. ` + (!same ? `Only ${held.measure} is tested.` : state.fill ? "Bold: significant." : "Filled: significant; underlined: not significant."));
    ui.count.textContent = `${arrange()} of ${total} rows` + (held.whole > total ? " on this page" : "") + (state.q || held.whole > total ? `; ranks over all ${held.whole}` : "") + (same ? "" : `; ranks and tests are of ${held.measure}`);
    ui.clear.hidden = !state.q;
    ui.unpin.hidden = !state.pin.length;
    ui.q.value = state.q;
    ui.measure.value = state.measure;
    ui.base.value = state.base;
    ui.abs.setAttribute("aria-pressed", !!state.view);
    ui.fill.setAttribute("aria-pressed", !!state.fill);
    for (const row of places) {
      const on = pinned(row);
      row.button.setAttribute("aria-pressed", on);
      row.button.textContent = on ? "★" : "☆";
    }
    const target = $("#files a[href*='compare/']");
    ui.pair.hidden = !target || state.pin.length < 2;
    if (target) ui.pair.href = `${target.getAttribute("href").split("#")[0]}#a=${state.pin[0]}&b=${state.pin[1]}`;
  }

  // The fragment holds what differs from the default view.
  function set(change) {
    const before = state, kept = new URLSearchParams();
    state = { ...state, ...change };
    draw(before);
    for (const key in state) if (`${state[key]}` !== `${usual[key]}`) kept.set(key, state[key]);
    history.replaceState(null, "", "#" + `${kept}`.replace(/%2C/g, ","));
  }

  // Unknown keys and values are left out, so that an old link still opens.
  function read() {
    if (location.hash && !location.hash.includes("=")) return;
    const given = new URLSearchParams(location.hash.slice(1)), before = state;
    const one = (key, good) => (given.get(key) && good(given.get(key)) ? given.get(key) : usual[key]);
    state = {
      sort: one("sort", (text) => all.some((head) => keyOf(head) === text.replace(/^-/, ""))),
      pin: (given.get("pin") || "").split(",").filter((id) => byId.get(id)?.ranked).slice(0, 2),
      base: one("base", (text) => text in held.clear),
      view: one("view", (text) => text === "abs"),
      fill: one("fill", (text) => text === "all"),
      measure: one("measure", (text) => text in held.values),
      q: (given.get("q") || "").slice(0, 99),
    };
    draw(before);
  }

  document.documentElement.classList.add("js");
  $$(".bar[hidden]").forEach((bar) => { bar.hidden = false; });
  const on = (id, event, act) => ui[id].addEventListener(event, act);
  on("q", "input", () => set({ q: ui.q.value }));
  on("clear", "click", () => { set({ q: "" }); ui.q.focus(); });
  on("unpin", "click", () => set({ pin: [] }));
  on("measure", "change", () => set({ measure: ui.measure.value }));
  on("base", "change", () => set({ base: ui.base.value }));
  on("abs", "click", () => set({ view: state.view ? "" : "abs" }));
  on("fill", "click", () => set({ fill: state.fill ? "" : "all" }));
  for (const button of $$("[data-copy]")) {
    button.addEventListener("click", () => {
      const about = [held.caption, held.note, `ranks and tests over all ${held.whole} rows; ${held.built} ${location.href}`].filter(Boolean);
      copy(written($("#" + button.dataset.of), button.dataset.copy, about), `copied as ${button.dataset.copy}`);
    });
  }
  for (const row of places) {
    row.button = make("button", { type: "button", class: "pin", "aria-label": `Pin ${row.name}`, on: { click: () => {
      set({ pin: pinned(row) ? state.pin.filter((id) => id !== row.id) : [...state.pin, row.id].slice(-2) });
      row.button.focus();
      say(state.pin.length ? `differences from ${byId.get(state.pin[0]).name}` : "scores");
    } } });
    row.main.cells[0].prepend(row.button);
  }
  for (const table of [board, heat]) {
    sorting(table, (key, number) => {
      set({ sort: turned(state.sort, key, number) });
      say((state.sort ? `sorted by ${key}, ${state.sort[0] === "-" ? "descending" : "ascending"}, ` : "by rank, ") + ui.count.textContent);
    });
  }
  draw(usual);
  read();
  addEventListener("hashchange", read);
})();
