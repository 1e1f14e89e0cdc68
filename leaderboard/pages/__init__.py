"""The families of pages, a module each; `leaderboard.page.FAMILIES` lists them."""
