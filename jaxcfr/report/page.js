// The table of strategies: searched, sorted and paged here. What is shown is in the address, so that it can be sent on.
"use strict";
(() => {
  const PAGE = 50;
  const MOST = 12; // actions that are listed one by one
  const COLOURS = 10;
  const data = JSON.parse(document.getElementById("data").textContent);
  const count = data.keys.length;
  const starts = new Array(count + 1).fill(0);
  for (let i = 0; i < count; i++) starts[i + 1] = starts[i] + data.menus[data.menu[i]].length;

  const colour = new Map();
  for (const menu of data.menus) for (const label of menu) if (!colour.has(label)) colour.set(label, colour.size % COLOURS);

  // In bits; what decides nothing has none.
  const mixing = Array.from({ length: count }, (_, i) => {
    let sum = 0;
    for (let k = starts[i]; k < starts[i + 1]; k++) {
      const p = data.probabilities[k];
      if (p > 0) sum -= p * Math.log2(p);
    }
    return Math.max(sum, 0);
  });

  const collator = new Intl.Collator(undefined, { numeric: true });
  const orders = {
    player: (a, b) => data.player[a] - data.player[b],
    key: (a, b) => collator.compare(data.keys[a], data.keys[b]),
    reach: data.reach && ((a, b) => data.reach[a] - data.reach[b]),
    mixing: (a, b) => mixing[a] - mixing[b],
  };

  const element = (id) => document.getElementById(id);
  const search = element("search"), player = element("player"), body = element("rows"), status = element("status");
  const previous = element("previous"), next = element("next");
  let state;

  const read = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    const sort = given.get("sort") || "";
    const who = given.get("player") || "";
    state = {
      q: given.get("q") || "",
      player: /^\d+$/.test(who) && Number(who) < data.players ? who : "",
      sort: Object.hasOwn(orders, sort) && orders[sort] ? sort : "",
      dir: given.get("dir") === "desc" ? "desc" : "asc",
      page: Math.max(1, Number.parseInt(given.get("page"), 10) || 1),
    };
  };

  const write = () => {
    const kept = new URLSearchParams();
    if (state.q) kept.set("q", state.q);
    if (state.player) kept.set("player", state.player);
    if (state.sort) { kept.set("sort", state.sort); kept.set("dir", state.dir); }
    if (state.page > 1) kept.set("page", state.page);
    history.replaceState(null, "", "#" + kept);
  };

  // As jaxcfr show --pattern: contained, or with * and ? the whole key.
  const matcher = (text) => {
    const folded = text.toLowerCase();
    if (!/[*?]/.test(folded)) return (key) => key.toLowerCase().includes(folded);
    const parts = folded.split(/([*?])/).map((part) =>
      part === "*" ? ".*" : part === "?" ? "." : part.replace(/[.+^${}()|[\]\\]/g, "\\$&"));
    const like = new RegExp("^" + parts.join("") + "$", "su");
    return (key) => like.test(key.toLowerCase());
  };

  const shown = (p) => p === 0 || p === 1 ? String(p)
    : p < 0.00005 ? "<0.0001" : p >= 0.99995 ? ">0.9999" : p.toFixed(4);
  const small = (p) => p === 0 || p >= 0.0001 ? shown(p) : p.toExponential(1);

  const make = (tag, name, text) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  const cell = (name, label, text) => {
    const made = make("td", name, text);
    made.dataset.label = label;
    return made;
  };

  const strategy = (i) => {
    const labels = data.menus[data.menu[i]];
    const chances = data.probabilities.slice(starts[i], starts[i + 1]);
    let kept = labels.map((_, a) => a);
    if (kept.length > MOST) kept = kept.sort((a, b) => chances[b] - chances[a] || a - b).slice(0, MOST).sort((a, b) => a - b);
    const made = make("td", "strategy"), bar = make("div", "bar"), chips = make("div", "chips");
    bar.setAttribute("aria-hidden", "true");
    for (const a of kept) {
      const piece = make("span", "c" + colour.get(labels[a]));
      piece.style.width = 100 * chances[a] + "%";
      piece.title = labels[a] + " " + shown(chances[a]);
      bar.append(piece);
      const chip = make("span", "chip");
      chip.append(make("i", "dot c" + colour.get(labels[a])), labels[a] + " ", make("b", "", shown(chances[a])));
      chips.append(chip);
    }
    if (kept.length < labels.length) chips.append(make("span", "quiet", `and ${(labels.length - kept.length).toLocaleString("en")} less probable`));
    made.append(bar, chips);
    return made;
  };

  const row = (i) => {
    const made = make("tr");
    made.append(cell("player", "player", data.player[i]), make("td", "key", data.keys[i]));
    if (data.reach) made.append(cell("number", "reached", small(data.reach[i])));
    made.append(cell("number", "mixing", mixing[i].toFixed(2)), strategy(i));
    return made;
  };

  const draw = () => {
    const wanted = matcher(state.q);
    const found = [];
    for (let i = 0; i < count; i++)
      if ((state.player === "" || data.player[i] === Number(state.player)) && wanted(data.keys[i])) found.push(i);
    if (state.sort) {
      const sign = state.dir === "desc" ? -1 : 1;
      const by = orders[state.sort];
      found.sort((a, b) => sign * by(a, b) || a - b);
    }
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    state.page = Math.min(state.page, pages);
    const begin = (state.page - 1) * PAGE;
    body.replaceChildren(...found.slice(begin, begin + PAGE).map(row));
    const many = (n) => n.toLocaleString("en");
    status.textContent = found.length === count ? `${many(count)} information sets` : `${many(found.length)} of ${many(count)} information sets`;
    if (pages > 1) status.textContent += `, page ${many(state.page)} of ${many(pages)}`;
    previous.disabled = state.page <= 1;
    next.disabled = state.page >= pages;
    if (search.value !== state.q) search.value = state.q;
    player.value = state.player;
    for (const head of document.querySelectorAll("#strategy th[data-sort]"))
      head.setAttribute("aria-sort", head.dataset.sort !== state.sort ? "none" : state.dir === "desc" ? "descending" : "ascending");
  };

  const change = (changes) => { Object.assign(state, { page: 1 }, changes); draw(); write(); };

  search.addEventListener("input", () => change({ q: search.value }));
  player.addEventListener("change", () => change({ player: player.value }));
  previous.addEventListener("click", () => change({ page: state.page - 1 }));
  next.addEventListener("click", () => change({ page: state.page + 1 }));
  for (const head of document.querySelectorAll("#strategy th[data-sort]"))
    head.querySelector("button").addEventListener("click", () => {
      const by = head.dataset.sort;
      // Numbers begin with the largest; a third click goes back to the order of the game.
      const first = by === "reach" || by === "mixing" ? "desc" : "asc";
      if (state.sort !== by) change({ sort: by, dir: first });
      else if (state.dir === first) change({ dir: first === "desc" ? "asc" : "desc" });
      else change({ sort: "", dir: "asc" });
    });
  window.addEventListener("hashchange", () => { read(); draw(); });
  read();
  draw();
})();
