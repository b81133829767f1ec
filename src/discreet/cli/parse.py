"""Events written as text: ``"poisson(0.01, gaussian(4)) * 10000 + laplace(2)"``.

The text is read as a Python expression tree and walked by hand: only the names below, numbers, lists of numbers,
adjacency names and the operators ``+ - * / |`` are known. Nothing is ever evaluated.

>>> step = ev.PoissonSampled(rate=0.01, event=ev.Gaussian(noise_multiplier=4.0))
>>> parse("poisson(1/100, gaussian(4)) * 1e4 + laplace(2)") == step * 10_000 + ev.Laplace(noise_multiplier=2.0)
True
>>> parse("open('/etc/passwd')")
Traceback (most recent call last):
...
ValueError: 'open' is not an event; known are approx, balls_in_bins, discrete_gaussian, discrete_laplace, exponential,
fixed_size, gaussian, gdp, kept_bins, laplace, nonprivate, one_of, poisson, proved_under, pure, randomized_response,
rdp, selected, shuffled, truncated_poisson, zcdp.
"""

from __future__ import annotations

import ast
import difflib
import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from discreet import events as ev

__all__ = ["NAMES", "mentions", "parse"]

# A parameter without its name is taken in the order of the event's fields: poisson(rate, event), approx(epsilon,
# delta).
NAMES: Mapping[str, type[ev.Event]] = {
    "approx": ev.ApproxDP,
    "balls_in_bins": ev.BallsInBins,
    "discrete_gaussian": ev.DiscreteGaussian,
    "discrete_laplace": ev.DiscreteLaplace,
    "exponential": ev.Exponential,
    "fixed_size": ev.FixedSizeSampled,
    "gaussian": ev.Gaussian,
    "gdp": ev.GDP,
    "kept_bins": ev.KeptBins,
    "laplace": ev.Laplace,
    "nonprivate": ev.NonPrivate,
    "one_of": ev.OneOf,
    "poisson": ev.PoissonSampled,
    "proved_under": ev.ProvedUnder,
    "pure": ev.PureDP,
    "randomized_response": ev.RandomizedResponse,
    "rdp": ev.RDP,
    "selected": ev.Selected,
    "shuffled": ev.Shuffled,
    "truncated_poisson": ev.TruncatedPoissonSampled,
    "zcdp": ev.ZCDP,
}

LONGEST = 10_000  # characters; what is longer than a line of text belongs in a JSON file

_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.BitOr: operator.or_,
}


def parse(text: str, unknowns: Mapping[str, float] | None = None) -> ev.Event:
    """The event that an expression describes; ``unknowns`` gives the value of free names such as ``x``."""
    if len(text) > LONGEST:
        raise ValueError(f"The event has {len(text):,} characters; above {LONGEST:,}, give it as JSON with --event.")
    try:
        result = _value(_tree(text).body, unknowns or {})
    except SyntaxError as error:
        raise ValueError(f"The event {_excerpt(text)} cannot be read: {error.msg}.") from None
    except (RecursionError, MemoryError):
        raise ValueError(f"The event {_excerpt(text)} is nested too deeply; give it as JSON with --event.") from None
    if not isinstance(result, ev.Event):
        raise ValueError(f"{_excerpt(text)} is not an event; write for example 'poisson(0.01, gaussian(4)) * 10000'.")
    return result


def mentions(text: str, name: str) -> bool:
    """Whether a well-formed expression uses a free name."""
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(_tree(text)))


def _tree(text: str) -> ast.Expression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python's, about code that will never be run
        return ast.parse(text.strip(), mode="eval")


def _value(node: ast.expr, unknowns: Mapping[str, float]) -> Any:
    match node:
        case ast.Constant(value=bool() | None):
            pass
        case ast.Constant(value=int() | float() | str() as constant):
            return constant
        case ast.Name(id=name) if name in unknowns:
            return unknowns[name]
        case ast.Call(func=ast.Name(id=name)) if name not in NAMES:
            raise ValueError(f"{name!r} is not an event{_meant(name)}; known are {', '.join(NAMES)}.")
        case ast.Name(id=name) if name not in NAMES:
            raise ValueError(
                f"{name!r} is neither a number nor an event{_meant(name)}: write a number, as the 2.5 of laplace(2.5), "
                "or an event with its parameters, as gaussian(4)."
            )
        case ast.Name(id=name):
            raise ValueError(f"{name!r} needs its parameters in parentheses: {_usage(name)}.")
        case ast.Call(func=ast.Name(id=name)):
            return _event(name, node, unknowns)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return tuple(_value(item, unknowns) for item in items)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _apply(operator.mul, -1, _value(operand, unknowns), node)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _apply(_OPERATORS[type(op)], _value(left, unknowns), _value(right, unknowns), node)
    raise ValueError(f"{_excerpt(ast.unparse(node))} is not part of the language of events.")


def _event(name: str, call: ast.Call, unknowns: Mapping[str, float]) -> ev.Event:
    kind = NAMES[name]
    order = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    given = {str(keyword.arg): _value(keyword.value, unknowns) for keyword in call.keywords}
    positional = [_value(argument, unknowns) for argument in call.args]
    named = dict(zip(order, positional, strict=False))
    if len(positional) > len(order) or set(named) & set(given) or set(given) - set(order):
        raise ValueError(f"{name} takes {_usage(name)}, each once.")
    try:
        return kind(**named, **given)
    except TypeError:
        raise ValueError(f"{name} is missing a parameter: {_usage(name)}.") from None


def _meant(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), NAMES, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _usage(name: str) -> str:
    return f"{name}({', '.join(field.name for field in fields(NAMES[name]))})"  # type: ignore[arg-type]


def _apply(act: Callable[[Any, Any], Any], left: Any, right: Any, node: ast.expr) -> Any:
    """Arithmetic on numbers, composition on events; 1e4 is as good a count as 10000."""
    left, right = _count(left, beside=right), _count(right, beside=left)
    # 'a' * 4000000000 is text, and 4 GB of it
    if not all(isinstance(side, (int, float, ev.Event)) for side in (left, right)):
        raise ValueError(f"{_excerpt(ast.unparse(node))} has no meaning: numbers take + - * /, events take + * |.")
    numbers = all(isinstance(side, (int, float)) for side in (left, right))
    if act in (operator.sub, operator.truediv, operator.or_) and numbers is (act is operator.or_):
        raise ValueError(f"{_excerpt(ast.unparse(node))} has no meaning: numbers take + - * /, events take + * |.")
    try:
        return act(left, right)
    except (TypeError, ZeroDivisionError, OverflowError) as error:
        raise ValueError(f"{_excerpt(ast.unparse(node))} has no value: {error}.") from None


def _count(value: Any, *, beside: Any) -> Any:
    return int(value) if isinstance(beside, ev.Event) and isinstance(value, float) and value.is_integer() else value


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
