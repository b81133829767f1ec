r"""From the uses of a batch to each block's norms, and to :math:`\sum_i f_i G_i`, one tensor a parameter.

In three passes: what was made of parameters is pulled back to them, every parameter's squared norms are measured
(several uses of one parameter are one gradient), and one weighted contraction a use gives the sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.errors import extra
from discreet.training.errors import MixedRecords
from discreet.training.gradients.clipping import Clipping
from discreet.training.gradients.joint import as_one_weight, joint_norms, pull_back
from discreet.training.gradients.rules.handlers import LIGHT, Handler
from discreet.training.gradients.rules.outer_products import LinearWeight
from discreet.training.gradients.uses import Use, at
from discreet.training.memory import Room

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Contraction"]

UsesOf = dict[int, list[Use]]


class Contraction:
    """Contracts the uses of ``parameters``, clipped in the blocks that ``clipping`` says. Holds no state of a batch."""

    def __init__(self, parameters: Mapping[str, Tensor], clipping: Clipping) -> None:
        self.parameters = list(parameters.values())
        self.block, self.shares = clipping.blocks(list(parameters))
        self.full_weight = [clipping.full_weight(share) for share in self.shares]
        self.dtype = torch.float64 if any(p.dtype == torch.float64 for p in self.parameters) else torch.float32
        self.scales: Sequence[Tensor] | None = None  # public: each coordinate times this is measured and added up
        self._vanished = sum(p.numel() for p in self.parameters) * torch.finfo(torch.float32).tiny
        self._names = list(parameters)
        self.derives = False  # whether a use was of something made of parameters
        self._place = {id(p): i for i, p in enumerate(self.parameters)}
        self._room = Room([(p.shape, torch.promote_types(p.dtype, torch.float32), p.device) for p in self.parameters])

    def scale(self, scales: Sequence[Tensor] | None) -> None:
        """Multiply each coordinate by a public number before it is measured."""
        self.scales = scales

    def room(self) -> list[Tensor]:
        """A sum of every parameter's shape and place, of half precision in single, not yet filled."""
        return self._room.fresh()

    def of_parameters(self, uses: list[Use]) -> UsesOf:
        """The uses of each parameter; those of a tensor made of parameters go back through how it was made."""
        found: UsesOf = {}
        made: UsesOf = {}
        for use in self._apart(uses):
            place = self._place.get(id(use.target))
            if place is None:
                made.setdefault(id(use.target), []).append(use)
                continue
            found.setdefault(place, []).append(use)
            if use.bias is not None:
                found[self._place[id(use.bias)]] = []  # nothing of its own
        self.derives |= bool(made)
        for those in made.values():
            tensor = those[0].target
            instances = sum(use.formed() for use in those)
            ours = [p for p in self.parameters if p.requires_grad]
            for parameter, gradient in zip(ours, pull_back(tensor, ours, instances), strict=True):
                if gradient is not None:
                    found.setdefault(self._place[id(parameter)], []).append(
                        Use(parameter, Handler(), None, None, gradient)
                    )
        return found

    def only_use(self, uses_of: UsesOf) -> tuple[Use, int, int | None] | None:
        """The use of the one parameter that was used, if it was once: with its place, and that of a bias used with it.

        None where there are others, several blocks, scales or double precision.
        """
        used = [(place, uses) for place, uses in uses_of.items() if uses]
        if len(used) != 1 or len(used[0][1]) != 1 or len(self.shares) != 1:
            return None
        if self.scales is not None or self.dtype != torch.float32:
            return None
        place, (use,) = used[0]
        return use, place, None if use.bias is None else self._place[id(use.bias)]

    def _apart(self, uses: list[Use]) -> list[Use]:
        """The uses, with a bias apart from its weight where one may be used again, or is clipped in another block."""
        met = [self._place.get(id(x)) for use in uses for x in (use.target, use.bias) if x is not None]
        again = None in met or len(set(met)) < len(met)  # none: something made of parameters, perhaps of these
        again = again or self.scales is not None  # which weight and bias have one each of
        return uses + [
            use.without_bias() for use in uses if use.bias is not None and (again or not self._together(use))
        ]

    def _together(self, use: Use) -> bool:
        weight, bias = (self.block[self._place[id(x)]] for x in (use.target, use.bias))
        return weight == bias

    def scaled(self, gradient: list[Tensor]) -> list[Tensor]:
        """A gradient as it is measured and added up."""
        return gradient if self.scales is None else [g * s for g, s in zip(gradient, self.scales, strict=True)]

    def _together_measured(self, uses_of: UsesOf) -> list[list[tuple[int, list[Use]]]]:
        """Parameters and their uses. Weights of one block whose outputs got the same gradient, as the two of an LSTM
        do, are in one list: they are measured as one."""
        found: dict[Any, list[tuple[int, list[Use]]]] = {}
        for place, uses in uses_of.items():
            shared = _received(uses) if self.scales is None else None
            found.setdefault((place,) if shared is None else (self.block[place], shared), []).append((place, uses))
        return list(found.values())

    def squares(self, uses_of: UsesOf, records: int) -> list[Tensor]:
        """Each block's squared norms, never negative: a Gram sum may round below zero. What squares that are too small
        for their precision may take away is added. With scales, the uses are of scaled gradients from here on."""
        found: list[Tensor | None] = [None] * len(self.shares)
        device = self.parameters[0].device
        for those in self._together_measured(uses_of):
            place, uses = those[0]
            if not uses:
                continue
            if self.scales is not None:
                scaled = sum(use.formed() for use in uses) * self.scales[place]
                uses[:] = [Use(uses[0].target, Handler(), None, None, scaled)]
            part, block = _norms(those), self.block[place]
            if part.shape[0] != records:
                raise MixedRecords(
                    f"Parameter {self._names[place]!r} was used on {part.shape[0]} records in a batch of "
                    f"{records}. Call the model on the batch as the loader gave it."
                )
            before = found[block]
            if part.dtype != self.dtype or part.device != device:
                part = part.to(device, self.dtype)
            found[block] = part if before is None else before + part
        return [
            torch.zeros(records, dtype=self.dtype, device=device)
            if square is None
            else square.clamp(min=0).add_(self._vanished)
            for square in found
        ]

    def _heavy(self, uses_of: UsesOf, factors: list[Tensor], clip_norm: float) -> Tensor | None:
        """Records whose terms, times their factors, exceed ``LIGHT`` clip norms in a block: they cancel, and must not
        be added up together with others'. None: nobody's do."""
        terms: list[Tensor | None] = [None] * len(self.shares)
        for place, uses in uses_of.items():
            for use in uses:
                if use.terms is not None:
                    before, own = terms[self.block[place]], use.terms
                    if own.dtype != self.dtype or own.device != factors[0].device:
                        own = own.to(factors[0])
                    terms[self.block[place]] = own if before is None else before + own
        blocks = zip(terms, factors, self.shares, strict=True)
        over = [own * factor > LIGHT * (clip_norm * share) for own, factor, share in blocks if own is not None]
        if not over:
            return None
        any_block = over[0] if len(over) == 1 else torch.stack(over).any(0)
        return any_block if bool(any_block.any()) else None

    def contract(
        self,
        uses_of: UsesOf,
        factors: list[Tensor],
        lost: Tensor | None,
        out: Sequence[Tensor],
        clip_norm: float = math.inf,
    ) -> None:
        """Write the sum of the records' gradients, each times its block's factor; ``lost`` records count for
        nothing. With a clip norm, records whose terms cancel are formed one by one (``LIGHT``)."""
        flat = [x if x.dim() == 1 else x.view(-1) for x in out]
        alone = self._heavy(uses_of, factors, clip_norm)
        for place, parameter in enumerate(self.parameters):
            uses = uses_of.get(place)
            if uses is None:
                flat[place].zero_()
                continue
            weights = factors[self.block[place]]
            # half precision is summed in single
            if weights.dtype != parameter.dtype or weights.device != parameter.device:
                weights = weights.to(parameter.device, torch.promote_types(parameter.dtype, torch.float32))
            for use in uses:
                if lost is not None:
                    use.blank(lost)
                formed = None if alone is None else use.take(alone.to(weights.device), weights)
                if use is uses[0]:
                    use.weigh(weights, flat[place], None if use.bias is None else flat[self._place[id(use.bias)]])
                else:
                    use.add(weights, flat[place])
                if formed is not None:
                    flat[place] += formed
                use.drop()


def _received(uses: list[Use]) -> Any:
    """Where the output gradients of a weight that was used once are: the same for weights that share them. None where
    they do not matter, because its gradients are formed or it is not a linear layer's."""
    if len(uses) != 1 or type(uses[0].handler) is not LinearWeight or uses[0].instances is not None:
        return None
    u = uses[0].gradients
    return None if u is None else at(u)


def _norms(those: list[tuple[int, list[Use]]]) -> Tensor:
    """Squared norms of a weight, or of several that got the same gradient: then the terms of all are noted at each."""
    uses = [own[0] for _, own in those]
    if len(those) == 1:
        return uses[0].squared_norms() if len(those[0][1]) == 1 else joint_norms(those[0][1])
    one = as_one_weight(uses)
    found = one.squared_norms()
    for use in uses:
        use.note_terms(one.terms)
    return found
