"""Where a kind that nobody wrote a rule for would be answered: ``python -m checks.defaults [room …]``.

Six forms can be seen in the text of a function, and each is listed unless what comes last raises:

* a conditional expression that asks for one word, ``2 if adjacency == "replace" else 1``;
* ``if kind == "a": return …`` with a plain ``return`` after it, or with an ``else`` that computes;
* a ``match`` whose last case takes the rest, or that is followed by a ``return``;
* ``TABLE.get(kind, something)``;
* ``isinstance(value, (int, float))``, which leaves out NumPy's numbers;
* ``return adjacency is Adjacency.REPLACE``: a truth value kept of a relation of neighbours, by which a relation that is
  new is taken for another (``changed_records`` raises).

Where a second answer is right, ``REASONS`` says why; a test holds that no other place is found.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "discreet"
OTHERS_WORDS = ("dtype.kind", "sys.platform", "dialect.name", "drivername", "get_backend_name()", "device.type")
"""Ends of expressions that hold a word of another library, which has more of them than we know."""
BESIDE_NUMBERS = {"auto", "drop", "inf", "one record"}
"""Words that stand where a number, or any other name, may stand."""

REASONS: dict[str, tuple[str, ...]] = {
    "its constructor lets no other kind in": (
        "accounting/pld/decay.py:_slopes",
        "accounting/pld/mixtures.py:Mixtures._strip_growth",
        "accounting/pld/mixtures.py:Rule._logs",
        "desk/client.py:_value",
        "desk/pages/home.py:_card",
        "desk/service.py:Service.describe",
        "features/scattering.py:Scattering._make_images",
        "ledger/verification.py:LedgerReplay._open",
    ),
    "what was asked for is one of the names that the line above gives": (
        "auditing/made_up.py:_edges",
        "cli/audit.py:_of_file",
        "ledger/book.py:Book._charge",
        "ledger/rules.py:check_price",
        "ledger/terms.py:Terms._set_ceiling",
        "mechanisms/discrete_gaussian.py:DiscreteGaussian.__post_init__",
        "mechanisms/discrete_laplace.py:DiscreteLaplace.__post_init__",
        "mechanisms/gaussian.py:Gaussian.__post_init__",
        "mechanisms/laplace.py:Laplace.__post_init__",
        "tables/calendar.py:_start",
    ),
    "the rest is handed on, to what prices or refuses it": (
        "accounting/guarantees.py:_sole_options",
        "accounting/leaves/choices.py:_reported",
        "accounting/pld/composition.py:_contour",
        "accounting/sampled_gaussian_rdp.py:sampled_gaussian_curve",
        "auditing/_same.py:_parts_of_polars",
        "cli/train.py:_optimizer",
        "encoding/containers.py:kind_of",
        "encoding/features.py:_column",
        "events/selection.py:_known_law",
        "events/tree.py:_decode_parameter",
        "synthesis/frames.py:kind_of_frame",
        "training/planning.py:_clipping",
        "training/verification/tape.py:LossTape.__torch_function__",
        "tables/calendar.py:Truncated.compile",
        "tables/date_functions.py:_months_of",
        "tables/possible_groups.py:_ends",
        "tables/where.py:_months",
        "__init__.py:__getattr__",
    ),
    "yes only where it is known, and no is what does no harm": (
        "auditing/_charges.py:_law",
        "linear/solvers/gd.py:GradientDescent._preconditioned_pace",
        "linear/solvers/gd.py:GradientDescent._ridge",
        "training/gradients/clipped_sum.py:ClippedSum.__init__",
        "training/sampling/collate.py:form_of",
        "tables/nodes.py:integral",
        "tables/resolve.py:_whole_days",
        "tables/whole_values.py:is_whole",
    ),
    "a column of an engine holds text, whole numbers or numbers": (
        "desk/public_tables.py:_made_up",
        "tables/columns.py:Columns._operand",
        "tables/columns.py:Columns.is_declared",
    ),
    "only how something is shown or written": (
        "cli/init.py:_answer",
        "cli/init.py:_quote",
        "cli/ledger.py:_line",
        "cli/test.py:run_test",
        "cli/text_form.py:_ask_date_format",
        "desk/pages/answer_views.py:_shown",
        "desk/pages/answer_views.py:_text",
        "desk/pages/answered.py:_show",
        "desk/pages/refusals.py:refused",
        "reporting/words.py:rule",
        "statistics/asking.py:spell_out",
        "tables/unmet_conditions.py:_compared",
        "tables/unmet_conditions.py:_words",
        "training/sampling/rehearsal.py:_shapes_that_differ",
    ),
    "JSON, TOML or our own parser made it: there are Python's numbers alone": (
        "cli/kept_findings.py:_findings",
        "cli/parse.py:_apply",
        "cli/train.py:_delta",
        "desk/expressions.py:_finite",
        "desk/expressions.py:_write_value",
        "desk/owners.py:_number",
        "desk/questions.py:_read",
        "linear/saved.py:flat",
    ),
    "NumPy's numbers are made Python's on the line before or after": (
        "desk/questions.py:_write",
        "schema.py:plain_category",
        "tables/lookups.py:PublicTable.lookups",
    ),
    "one of two that the lines above made, or the safer of two": (
        "accounting/leaves/wrappers.py:_parallel",
        "desk/pages/owner.py:freeze",
        "desk/pages/routes.py:answer",
        "desk/service.py:Service._admit",
    ),
    "a number that is asked for its size, not a kind": (
        "encoding/columns.py:moments",
        "mechanisms/values.py:exact_number",
    ),
}
"""By reason: the files and functions where what is left over may be answered."""


def is_word(node: ast.expr) -> bool:
    """Whether it is a word of ours, or a member of an enumeration."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and len(node.value) > 1 and node.value not in BESIDE_NUMBERS
    return isinstance(node, ast.Attribute) and node.attr.isupper() and ast.unparse(node.value)[:1].isupper()


def asks_for_words(test: ast.expr) -> bool:
    """Whether a condition compares something with words, and asks nothing else.

    >>> [asks_for_words(ast.parse(text).body[0].value) for text in ("kind == 'add'", "kind in ('add', 'b2')", "n == 1")]
    [True, True, False]
    """
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or ast.unparse(test.left).endswith(OTHERS_WORDS):
        return False
    right = test.comparators[0]
    words = right.elts if isinstance(right, (ast.Tuple, ast.Set, ast.List)) else [right]
    known = isinstance(test.ops[0], (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn))
    return known and bool(words) and all(map(is_word, words))


def refuses(statement: ast.stmt | ast.expr) -> bool:
    """Whether an unknown kind ends there: it raises, or asks ``choice``."""
    if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Raise):
        return asks_for_words(statement.test)
    return isinstance(statement, ast.Raise) or "choice(" in ast.unparse(statement)


def answers_the_rest(statement: ast.stmt, rest: list[ast.stmt]) -> bool:
    """Whether a statement chooses by a kind, and another kind is answered by it or by what follows."""
    returns_after = bool(rest) and isinstance(rest[0], ast.Return)
    if isinstance(statement, ast.Match):
        last = statement.cases[-1]
        takes_all = last.guard is None and isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
        return not refuses(last.body[-1]) and not isinstance(last.body[-1], ast.Pass) if takes_all else returns_after
    if not isinstance(statement, ast.If) or not asks_for_words(statement.test):
        return False
    if not statement.orelse:
        return isinstance(statement.body[-1], ast.Return) and returns_after and not refuses(rest[0])
    end: list[ast.stmt] = [statement]
    while len(end) == 1 and isinstance(end[0], ast.If):
        end = end[0].orelse
    return bool(end) and not refuses(end[-1])


def leaves_numbers_out(node: ast.Call) -> bool:
    """Whether it asks for Python's numbers alone."""
    if ast.unparse(node.func) != "isinstance":
        return False
    kinds = {each.strip() for each in ast.unparse(node.args[1]).strip("()").replace("|", ",").split(",")}
    return {"int", "float"} <= kinds and not any("np." in kind or "Number" in kind for kind in kinds)


def has_default(node: ast.Call) -> bool:
    """Whether it looks a kind up in a table, and takes something else where it is not there."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "get" or len(node.args) != 2:
        return False
    table = node.func.value
    return isinstance(table, ast.Dict) or ast.unparse(table).strip("_").isupper()


def keeps_a_relation(statement: ast.stmt) -> bool:
    """Whether it compares with a relation of neighbours, and the answer is no question of an ``if`` of its own."""
    if isinstance(statement, (ast.Return, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)):
        chosen = {each.test for each in ast.walk(statement) if isinstance(each, ast.IfExp)}
        compared = [each for each in ast.walk(statement) if isinstance(each, ast.Compare) and each not in chosen]
        return any("Adjacency." in ast.unparse(each.comparators[0]) for each in compared)
    return False


def places(function: ast.AST) -> Iterator[ast.AST]:
    """What is written in a function, not in one inside it and not in a ``raise``, and answers an unknown kind."""
    if isinstance(function, ast.IfExp) and asks_for_words(function.test) and not refuses(function.orelse):
        yield function
    if isinstance(function, ast.Call) and (leaves_numbers_out(function) or has_default(function)):
        yield function
    if isinstance(function, ast.stmt) and keeps_a_relation(function):
        yield function
    for block in (getattr(function, field, None) for field in ("body", "orelse")):
        if isinstance(block, list):
            yield from (each for i, each in enumerate(block) if answers_the_rest(each, block[i + 1 :]))
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Raise)):
            yield from places(child)


def findings(source: str) -> list[tuple[str, int, str]]:
    """Function, line and text of each place of a module.

    >>> findings("def f(kind):\\n    return 2 if kind == 'replace' else 1")
    [('f', 2, "2 if kind == 'replace' else 1")]
    >>> findings("def f(kind):\\n    if kind == 'replace':\\n        return 2\\n    raise ValueError(kind)")
    []
    """
    found = []
    for owner in ast.walk(ast.parse(source)):
        for node in ast.iter_child_nodes(owner):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name = f"{owner.name}.{node.name}" if isinstance(owner, ast.ClassDef) else node.name
                found += [(name, place.lineno, ast.unparse(place).splitlines()[0]) for place in places(node)]  # type: ignore[attr-defined]
    return sorted(found, key=lambda each: each[1])


def survey(*rooms: str) -> dict[str, list[str]]:
    """By file and function: what was found there, in the whole package or in some rooms."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE)
        if not rooms or file.parts[0] in rooms:
            for name, line, text in findings(path.read_text("utf-8")):
                found.setdefault(f"{file}:{name}", []).append(f"line {line}: {text}")
    return found


def main() -> None:
    """Print those that have no reason, and how many have."""
    found, reasons = survey(*sys.argv[1:]), {place for places in REASONS.values() for place in places}
    unexplained = {place: texts for place, texts in found.items() if place not in reasons}
    for place, texts in unexplained.items():
        print(place, *texts, sep="\n    ")
    rest = len(found) - len(unexplained)
    print(f"{len(unexplained)} functions answer a kind that nobody wrote a rule for; {rest} more, for a stated reason")


if __name__ == "__main__":
    main()
