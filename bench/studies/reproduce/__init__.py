"""Run a result again and compare."""
