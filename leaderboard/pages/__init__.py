"""The families of pages, a module each; `leaderboard.build.FAMILIES` lists them."""
