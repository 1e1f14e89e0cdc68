// Before anything is drawn: the theme that the reader chose, if one was. The button is made by the script that comes later.
"use strict";
try {
  const theme = localStorage.getItem("rb-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch (error) { /* nothing is remembered */ }
