r"""What a raise does to a book's proof.

A filter's limit must be fixed before the first answer. A limit that is raised after answers were seen is another
matter: who decides to raise, when and by how much, may depend on them. What holds then is composition. A raise by (ε₊,
δ₊) ends a *stage* of the book and begins the next, with a filter of its own; for one ordered pair of neighbours, and in
the words of ``filters``:

**The stage that ends** stood within its filter, at a moment that depends on its answers. Its reading ε₁ is an
odometer's, so

.. math:: E_P\big[(1-e^{\varepsilon_1-L_1})_+\big] \le \delta_1 ,

with ε₁ at most its limit, and its δ₁ counted whole, whatever of it was used.

**The stage that begins** has a filter with the limit (ε₂, δ₂) = (what was promised in all, ε₊ included, less ε₁; δ₊).
It is fixed from here on: given everything seen so far, E_P[(1 − e^{ε₂ − L₂})₊] ≤ δ₂, whatever is chosen from now on.
That an answer reserved in the first stage is drawn in the second changes nothing: each bound is a supermartingale's, or
a simulation's, in the history of both.

A stage in which nothing was charged is widened instead: its filter's limit is fixed before its first answer all the
same.

**Together.** With a = min(1, e^{ε₁−L₁}) and b = min(1, e^{ε₂−L₂}), 1 − ab ≤ (1 − a) + (1 − b), hence

.. math:: E_P\big[(1-e^{\varepsilon_1+\varepsilon_2-L_1-L_2})_+\big] \le \delta_1+\delta_2 ,

and so on for every further raise. With a *ceiling* that was declared at opening, and which no raise may pass, the whole
book is (ceiling)-DP by this line, whatever was decided when. Without one, the sum is what an odometer's reading is: a
bound for what happened, whose size was decided after answers were seen; the report says so.

A stage with δ₊ = 0 has no delta for Gaussian or Rényi filters and admits pure events only. A raise of a book raises
neither the books in it nor those above. Parts of a partition stand, for a book that was not raised, at the costliest of
them; a raised book pays for each of them in full, because what its parts had saved belongs to the stage that ended.

References: for odometers, Rogers, Roth, Ullman and Vadhan (2016), Whitehouse, Ramdas, Rogers and Wu (2023); for the
sum, basic composition as in Dwork and Roth (2014), Theorem 3.16.

Decision 86.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from discreet.ledger.amounts import NOTHING, Amounts, Number, exact
from discreet.ledger.filters import USUAL, Limit, Proved, Reading, exact_total, reading
from discreet.ledger.terms import Terms

__all__ = ["Stage"]


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a book stands: what it may spend in all, what earlier stages took of that, what was charged since."""

    epsilon: Number
    delta: Number
    filter: str = USUAL
    before_epsilon: Number = Fraction(0)
    before_delta: Number = Fraction(0)
    amounts: Amounts = NOTHING
    raised: bool = False

    @staticmethod
    def first(terms: Terms, amounts: Amounts) -> Stage:
        """The stage of a book that was never raised."""
        return replace(_first_stage(terms), amounts=amounts)

    @property
    def limit(self) -> Limit:
        """What this stage's filter may spend."""
        return Limit(self.epsilon - self.before_epsilon, self.delta - self.before_delta, self.filter)

    def read(self, delta: Number | None = None) -> Reading:
        """What is proved in all, at the book's delta or at another."""
        now = exact_total(self.limit, self.amounts, None if delta is None else delta - self.before_delta)
        if not self.raised:
            return now.as_floats()
        # by earlier stages; the filters divide what is left of the book
        taken = float(self.before_epsilon / self.epsilon)
        fraction = taken + (1 - taken) * now.fraction
        return Proved(self.before_epsilon + now.epsilon, f"before the raise, then {now.proof}", fraction).as_floats()

    def next(self, epsilon: float, delta: float) -> Stage:
        """The stage that a raise by (epsilon, delta) begins; one in which nothing was charged yet is only widened."""
        wider = replace(self, epsilon=self.epsilon + exact(epsilon), delta=self.delta + exact(delta), raised=True)
        if self.amounts == NOTHING:
            return wider
        ended = min(exact(reading(self.limit, self.amounts).epsilon), self.limit.epsilon)
        return replace(wider, before_epsilon=self.before_epsilon + ended, before_delta=self.delta, amounts=NOTHING)

    def to_json(self) -> str:
        """Canonical JSON; the amounts inside are text of their own."""
        kept = {name: str(getattr(self, name)) for name in ("epsilon", "delta", "before_epsilon", "before_delta")}
        return json.dumps(kept | {"amounts": self.amounts.to_json()}, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_json(text: str, filter: str) -> Stage:
        """The stage of a raised book."""
        data = json.loads(text)
        amounts = Amounts.from_json(data.pop("amounts"))
        numbers = {name: Fraction(value) for name, value in data.items()}
        return Stage(filter=filter, amounts=amounts, raised=True, **numbers)


@lru_cache(maxsize=1024)
def _first_stage(terms: Terms) -> Stage:
    return Stage(exact(terms.epsilon), exact(terms.delta), terms.filter)
