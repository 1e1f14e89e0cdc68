"""The leaderboard: a static site, exports and checked submissions, made from results and their bundles alone."""
