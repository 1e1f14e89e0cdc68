// What the other parts share: finding and making elements, a live region, the theme button.
const $ = (what, from) => (from || document).querySelector(what);
const $$ = (what, from) => Array.from((from || document).querySelectorAll(what));

// An element with text; attributes by name, listeners by `on`.
function make(tag, given, ...inside) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(given || {})) {
    if (key === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...inside);
  return made;
}

// Percent or points with one decimal from millionths, as Python prints them: ties to even, a true minus.
function points(millionths, sign) {
  const value = 100 * (Math.abs(millionths) / 1e6);
  const text = (value % 1 === 0.25 ? value - 0.05 : value).toFixed(1);
  if (Number(text) === 0) return text;
  return (millionths < 0 ? "−" : sign ? "+" : "") + text;
}

// JSON that the page holds.
function data(id) {
  const found = document.getElementById(id);
  return found ? JSON.parse(found.textContent) : null;
}

const live = make("p", { class: "hidden", role: "status", "aria-live": "polite" });
document.body.append(live);
const say = (text) => { live.textContent = text; };

// Storage may be refused (private windows, some file: pages); the site then forgets, no more.
function remembered(key, value) {
  try {
    if (value === undefined) return localStorage.getItem(key);
    localStorage.setItem(key, value);
  } catch (error) { /* nothing is remembered */ }
  return null;
}

(function theme() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const shown = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const button = make("button", { type: "button", class: "theme" });
  const name = () => { button.textContent = shown() === "dark" ? "Light theme" : "Dark theme"; };
  button.addEventListener("click", () => {
    root.dataset.theme = shown() === "dark" ? "light" : "dark";
    remembered("rb-theme", root.dataset.theme);
    name();
  });
  dark.addEventListener("change", name);
  name();
  $(".tools").prepend(button);
})();
