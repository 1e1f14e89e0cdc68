"""What a table may claim of the order of its rows: rank intervals, letters and the best group.

All three are read from one set of decided pairs, so that they cannot contradict each other: (better, worse) where the
corrected test of the pair is significant. A pair that is not in it is tied, or was not tested. Ties are not transitive
(a may be tied with b and b with c while a is better than c), which is why groups are marked by letters and overlap.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from bench.core.errors import UsageError

LETTERED = 30
"""Rows up to which letters are given: of more, a row can have hundreds."""
Pair = tuple[str, str]


@dataclass(frozen=True)
class Order:
    """What corrected tests leave open of an order.

    Args:
        ranks: first and last place of each row.
        letters: of each row; rows that share one are not significantly different. Empty beyond `LETTERED` rows.
        best: the first row and all that are not significantly different from it.
    """

    ranks: Mapping[str, tuple[int, int]]
    letters: Mapping[str, str]
    best: tuple[str, ...]


def ordered(names: Sequence[str], better: Collection[Pair]) -> Order:
    """Order rows, the best first, by the pairs (better, worse) that are decided; errors as for `rank_intervals`."""
    shown = letters(names, better) if len(names) <= LETTERED else {}
    return Order(rank_intervals(names, better), shown, best_group(names, better))


def rank_intervals(names: Sequence[str], better: Collection[Pair]) -> dict[str, tuple[int, int]]:
    """Return each row's ranks: 1 + rows that are better … rows − worse ones. Raises `UsageError` for faulty pairs."""
    pairs = _checked(names, better)
    above = dict.fromkeys(names, 0)
    below = dict.fromkeys(names, 0)
    for winner, loser in pairs:
        above[loser] += 1
        below[winner] += 1
    return {name: (1 + above[name], len(names) - below[name]) for name in names}


def letters(names: Sequence[str], different: Collection[Pair]) -> dict[str, str]:
    """Return the compact letter display: two rows share a letter if and only if they are not significantly different.

    The algorithm is insert and absorb (Piepho 2004, A compact letter display): one group of all rows; each pair that is
    different splits every group that holds both; groups inside others are dropped. Letters are given out in the order
    of the rows, the best first: `a`, `ab`, …; after `z` come `a1`, `b1` and so on. Pairs may be in either order; errors
    as for `rank_intervals`.
    """
    place = {name: number for number, name in enumerate(names)}
    groups = [(1 << len(names)) - 1] if names else []
    for first, second in sorted((place[first], place[second]) for first, second in _checked(names, different)):
        both = 1 << first | 1 << second
        parts = {group & ~(1 << dropped) for group in groups if group & both == both for dropped in (first, second)}
        groups = [group for group in groups if group & both != both]  # none of them can lie in a part
        for part in sorted(parts, key=int.bit_count, reverse=True):
            if not any(part & group == part for group in groups):
                groups.append(part)
    groups.sort(key=lambda group: [number for number in range(len(names)) if group >> number & 1])
    # A digit follows once the alphabet is used up, so that the letters of a row stay distinct.
    turns = [divmod(number, len(ascii_lowercase)) for number in range(len(groups))]
    marks = [ascii_lowercase[letter] + (str(turn) if turn else "") for turn, letter in turns]
    return {
        name: "".join(mark for mark, group in zip(marks, groups, strict=True) if group >> place[name] & 1)
        for name in names
    }


def best_group(names: Sequence[str], different: Collection[Pair]) -> tuple[str, ...]:
    """Return the first row and all that are not significantly different from it; arguments as for `letters`."""
    pairs = _checked(names, different)
    beaten = {name for pair in pairs if names[0] in pair for name in pair} - {names[0]} if names else set()
    return tuple(name for name in names if name not in beaten)


def _checked(names: Sequence[str], pairs: Iterable[Pair]) -> set[Pair]:
    """Return the pairs, if they are of these rows and no pair is decided both ways."""
    rows, checked = set(names), set(pairs)
    if len(rows) != len(names):
        raise UsageError(found=f"a name twice among the rows {', '.join(names)}", expected="unique names")
    for first, second in checked:
        if first == second or not {first, second} <= rows:
            raise UsageError(found=f"the pair {first}, {second}", expected=f"two different rows of {', '.join(names)}")
        if (second, first) in checked:
            raise UsageError(found=f"{first}, {second} decided both ways", expected="each pair once")
    return checked
