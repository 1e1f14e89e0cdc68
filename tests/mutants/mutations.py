"""Mutations of Python source: single changes of an expression that alter what a program does.

A mutation replaces one expression by another: `<` by `<=`, `==` by `!=`, `and` by `or`, `+` by `-`, `&` by `|`, a
number by the next one, `f(a, b)` by `f(b, a)`, `{**a, **b}` by `{**b, **a}`, `min` by `max`, `sorted(x)` by its
reverse, a condition by its opposite, `not x` by `x`. Text is left alone, and so are annotations and decorators, whose
changes type checkers find or nobody can, and what cannot change a result: the order of what `min` and `max` compare,
and whether `zip` makes sure of equal lengths.
"""

import ast
import copy
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
CALLS = {"min": "max", "any": "all", "union": "intersection", "removeprefix": "removesuffix", "startswith": "endswith"}
SYMMETRIC = frozenset({"min", "max", "minimum", "maximum"})
"""Functions whose arguments stand in no order."""
CALLS |= {after: before for before, after in CALLS.items()}
OPPOSITES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
"""Comparisons whose mutation is the opposite already."""


class Mutation(NamedTuple):
    """One change: the characters from `start` to `end` of a file become `text`."""

    file: str
    line: int
    kind: str
    start: int
    end: int
    text: str

    def apply(self, source: str) -> str:
        """Return the mutated source."""
        return f"{source[: self.start]}({self.text}){source[self.end :]}"


def mutations(file: str, source: str) -> list[Mutation]:
    """Return all mutations of a module, by position.

    Args:
        file: name that the mutations carry.
        source: text of the module.
    """
    lines = source.splitlines(keepends=True)
    starts = [0, *accumulate(len(line) for line in lines)]

    def offset(line: int, column: int) -> int:  # `ast` counts columns in bytes
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    rows = []
    for node, kind, replacement in _changes(ast.parse(source), in_function=False):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        span = offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)
        rows.append(Mutation(file, node.lineno, kind, *span, ast.unparse(replacement)))
    return sorted(rows)


class Statement(NamedTuple):
    """The innermost statement around a mutation: its lines without those of statements within, and when it runs."""

    lines: frozenset[int]
    at_import: bool


def statement_of(source: str, mutation: Mutation) -> Statement:
    """Return the statement that a mutation of a module changes.

    Args:
        source: text of the module, without the mutation.
        mutation: one of its mutations.
    """

    def lines_of(node: ast.stmt) -> set[int]:
        return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))

    def innermost(node: ast.AST, at_import: bool) -> Statement | None:
        inside = at_import and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        children = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
        for child in children:
            if (statement := innermost(child, inside)) is not None:
                return statement
        if not isinstance(node, ast.stmt):
            return None
        nested = [lines_of(child) for child in ast.walk(node) if isinstance(child, ast.stmt) and child is not node]
        lines = lines_of(node).difference(*nested)
        return Statement(frozenset(lines), at_import) if mutation.line in lines else None

    statement = innermost(ast.parse(source), at_import=True)
    assert statement is not None
    return statement


def _changes(node: ast.AST, in_function: bool) -> Iterator[tuple[ast.expr, str, ast.expr]]:
    """Yield each expression of a tree that can be changed, the kind of change, and what replaces it."""
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.expr):
        for kind, replacement in _replacements(node):
            if in_function or kind != "set operator":  # outside of functions `|` joins types
                yield node, kind, replacement
    conditions = [node.test] if isinstance(node, ast.If | ast.IfExp | ast.While) else []
    conditions += node.ifs if isinstance(node, ast.comprehension) else []
    for test in conditions:
        flipped = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], OPPOSITES)
        if not flipped and not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            yield test, "condition", ast.UnaryOp(ast.Not(), test)
    is_assertion = isinstance(node, ast.keyword) and node.arg == "strict"
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or is_assertion:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                yield from _changes(child, inside)


def _replacements(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield the kinds of change of one expression, and what replaces it."""
    changed = copy.copy(node)
    match changed:
        case ast.Compare(ops=[op, *_]):
            changed.ops = [COMPARISONS[type(op)](), *changed.ops[1:]]
            yield "comparison", changed
        case ast.BoolOp(op=op):
            changed.op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and/or", changed
        case ast.BinOp(op=op) if type(op) in OPERATORS:
            changed.op = OPERATORS[type(op)]()
            yield "set operator" if isinstance(op, ast.BitAnd | ast.BitOr) else "operator", changed
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "dropped not", operand
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield "constant", ast.Constant(2 * value or 1.0)
        case ast.Dict(keys=[None, *_, None] | [None, _, *_]):
            changed.keys, changed.values = changed.keys[::-1], changed.values[::-1]
            yield "order of layers", changed
        case ast.Call():
            yield from _replaced_calls(changed)


def _replaced_calls(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Yield the changes of one call."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if name == "sorted":
        yield "sorted order", ast.Call(ast.Name("list"), [ast.Call(ast.Name("reversed"), [call], [])], [])
    if name in CALLS:
        func = copy.copy(call.func)
        setattr(func, "id" if isinstance(func, ast.Name) else "attr", CALLS[name])
        yield "other function", ast.Call(func, call.args, call.keywords)
    plain = [argument for argument in call.args if not isinstance(argument, ast.Starred)]
    if name not in SYMMETRIC and len(plain) >= 2 and plain == call.args and ast.dump(plain[0]) != ast.dump(plain[1]):
        yield "swapped arguments", ast.Call(call.func, [plain[1], plain[0], *plain[2:]], call.keywords)
