"""What `make mutants` changes: each kind of expression once, one place at a time, the same for the same seed."""

import ast
import json
from collections import Counter

from tests.mutants.__main__ import EQUIVALENT, PLACES, ROOT, sample, sources, steps
from tests.mutants.mutations import mutations

CHANGES = {
    "x = a < b": ["(a <= b)"],
    "x = a in b": ["(a not in b)"],
    "x = a and b or c": ["((a and b) and c)", "(a or b) or c"],
    "x = a + 1": ["(a - 1)", "a + (2)"],
    "x = not a": ["(a)"],
    "x = f(a, b)": ["(f(b, a))"],
    "x = f(a, a)": [],
    "x = sorted(a)": ["(list(reversed(sorted(a))))"],
    "x = min(a)": ["(max(a))"],
    "x = {**a, **b}": ["({**b, **a})"],
    "x = a if b else c": ["a if (not b) else c"],
    "x = [a for a in b if c]": ["[a for a in b if (not c)]"],
    "x = True": ["(False)"],
    "x = 'ü', 0.5": ["'ü', (1.0)"],
    "x: int | None = f'{a + b}'": [],
    "X = int | str": [],
    "x = lambda: a | b": ["lambda: (a & b)"],
}


def test_each_kind_of_expression_is_changed_in_its_place() -> None:
    for source, expected in CHANGES.items():
        results = [mutation.apply(source).removeprefix("x = ") for mutation in mutations("some.py", source)]
        assert sorted(results) == sorted(expected), source


def test_a_sample_is_reproducible_and_every_mutation_is_a_program() -> None:
    """Each changes its own line, and every place is sampled from."""
    sampled = sample(3, 200)
    assert sampled == sample(3, 200) != sample(4, 200)
    assert len(set(sampled)) == 200
    for mutation in sampled[:40]:
        source = (ROOT / mutation.file).read_text(encoding="utf-8")
        changed = mutation.apply(source)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)), mutation
        assert changed.splitlines()[: mutation.line - 1] == source.splitlines()[: mutation.line - 1]
    places = Counter(place for place in PLACES for mutation in sampled if mutation.file.startswith(place))
    assert set(places) == set(PLACES)


def test_places_and_their_tests_exist_and_few_are_argued_away() -> None:
    for place in PLACES:
        for file in sources(place):
            for group in steps(file):
                assert all((ROOT / path).exists() for path in group), (file, group)
        assert sources(place), place
    entries = json.loads(EQUIVALENT.read_text(encoding="utf-8"))
    assert len(entries) <= 5
    assert all(set(entry) == {"file", "before", "after", "reason"} for entry in entries)
