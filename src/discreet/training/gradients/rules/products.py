r"""Parameters inside products: ``matmul``, ``addmm``, ``bmm``, ``baddbmm``, ``einsum``, ``tensordot``, by one rule.

Every such call is a contraction of labelled dimensions. Those of the weight are of three kinds: contracted with the
data (n), in the output alone (m), in both (g). With everything else of a record as its steps t,

.. math:: G_i[g, m, n] = \sum_t u_{i}[g, t, m]\, v_{i}[g, t, n],

output gradients u times data v: outer products, one set for each g, and no gradient of a record need be formed.

Decision 403.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from discreet.errors import extra
from discreet.training.gradients.rules.broadcasting import broadcast_use
from discreet.training.gradients.rules.handlers import KEPT, Call, Handler, Layout, Measured, PendingUse, register
from discreet.training.gradients.rules.outer_products import LinearWeight, Outer, by_group, outer_norms

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["GroupedWeight", "TurnedWeight"]

Labels = list[Any]
RECORD, ENTRY = "record", "entry"  # labels of our own: the records, and the entries of one that are folded with them


class TurnedWeight(Outer):
    """A weight whose first dimensions are contracted with the data: activations [B, T, n], gradients [B, T, m]."""

    def factors(self, activations: Tensor, output_gradients: Tensor) -> tuple[Tensor, Tensor]:
        """Activations first, as they are in the weight."""
        return activations, output_gradients


class GroupedWeight(Handler):
    """A weight for each of several groups: activations [B, G, T, n], output gradients [B, G, T, m].

    ``sizes`` are those of the dimensions (groups, outputs, inputs), and ``order`` puts them as the weight has them.
    """

    def __init__(self, sizes: Sequence[int], order: Sequence[int]) -> None:
        self.sizes, self.order = tuple(sizes), tuple(order)

    def _arrange(self, found: Tensor, leading: int) -> Tensor:
        shaped = found.reshape(*found.shape[:leading], *self.sizes)
        return shaped.permute(*range(leading), *(leading + d for d in self.order))

    def prefers_instances(self, activations: Tensor, output_gradients: Tensor) -> bool:
        """Where they take no more memory than what they replace."""
        kept = activations.shape[0] * math.prod(self.sizes)
        return activations.shape[2] > 1 and kept <= max(KEPT // 16, activations.numel() + output_gradients.numel())

    def instantiate(self, activations: Tensor, output_gradients: Tensor) -> Tensor:
        """One batched matrix product."""
        return self._arrange(torch.matmul(output_gradients.mT, activations), 1)

    def squared_norms(self, activations: Tensor, output_gradients: Tensor) -> Tensor:
        """Groups are separate entries, so their squares add."""
        return self.measure(activations, output_gradients)[0]

    def measure(self, activations: Tensor, output_gradients: Tensor) -> Measured:
        """The same; the terms are the steps of all groups."""
        found = outer_norms(output_gradients.flatten(0, 1), activations.flatten(0, 1))
        return by_group(found, activations.shape[1])

    def weighted_sum(self, activations: Tensor, output_gradients: Tensor, weights: Tensor) -> Tensor:
        """One matrix product a group, over all records and steps."""
        u, v = (output_gradients * weights.view(-1, 1, 1, 1), activations)
        return self._arrange(torch.bmm(u.permute(1, 3, 0, 2).flatten(2), v.transpose(0, 1).flatten(1, 2)), 0)


# --- one rule ------------------------------------------------------------------------------------------------------


def _apart(x: Tensor, labels: Labels, layout: Layout) -> tuple[Tensor, Labels]:
    """Records first, and the labels of what follows."""
    middle = [ENTRY] if layout.fold > 1 else []
    return layout.apart(x), [RECORD, *labels[: layout.dim], *middle, *labels[layout.dim + 1 :]]


def _order(x: Tensor, labels: Labels, *groups: Labels) -> Tensor:
    """[records, one dimension a group of labels]; what is in no group is summed."""
    wanted = [RECORD, *(label for group in groups for label in group)]
    rest = [d for d, label in enumerate(labels) if label not in wanted]
    if rest:
        x, labels = x.sum(rest), [label for label in labels if label in wanted]
    x = x.permute([labels.index(label) for label in wanted])
    sizes, start = [x.shape[0]], 1
    for group in groups:
        sizes.append(math.prod(x.shape[start : start + len(group)]))
        start += len(group)
    return x.reshape(sizes)


def _without_ones(x: Tensor, labels: Labels, sizes: dict[Any, int]) -> tuple[Tensor, Labels]:
    """Without dimensions of size one that are spread over the other operand's."""
    spread = [d for d, label in enumerate(labels) if x.shape[d] == 1 and sizes[label] > 1]
    return x.squeeze(spread), [label for d, label in enumerate(labels) if d not in spread]


def _sizes(*operands: tuple[Tensor, Labels]) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for x, labels in operands:
        for label, size in zip(labels, x.shape, strict=True):
            found[label] = max(found.get(label, 1), size)
    return found


def _weight_use(
    call: Call, weight: Tensor, data: Tensor, labels: tuple[Labels, Labels, Labels], scale: float
) -> PendingUse | None:
    """The weight's use in a contraction with these labels of weight, data and output; none where it is none of a
    record."""
    layout, (of_weight, of_data, of_output) = call.layout(data), labels
    if layout is None or any(len(set(own)) < len(own) for own in labels):
        return None
    record, sizes = of_data[layout.dim], _sizes((weight, of_weight), (data, of_data))
    if record in of_weight or record not in of_output:
        return None
    where = layout.at(of_output.index(record))
    if where is None:
        return None
    _, kept = _without_ones(weight.detach(), of_weight, sizes)
    x, own = _apart(data.detach().conj(), of_data, layout)  # of complex numbers; real ones are their own
    x, own = _without_ones(x, own, sizes | {RECORD: 1, ENTRY: 1})
    placed = _apart(weight.new_empty(()).expand([sizes[label] for label in of_output]), of_output, where)[1]
    groups = [label for label in kept if label in own and label in placed]
    outputs = [label for label in kept if label not in own and label in placed]
    inputs = [label for label in kept if label in own and label not in placed]
    if len(groups) + len(outputs) + len(inputs) < len(kept):  # summed over, whatever the data
        return None
    steps = [label for label in placed if label in own and label not in groups and label != RECORD]
    if any(label not in own and label not in kept and label != RECORD for label in placed):
        return None

    def view(g: Tensor) -> Tensor:
        found = _order(where.apart(g), placed, groups, steps, outputs)
        found = found if scale == 1 else found * scale
        return found if grouped else found.squeeze(1)

    v = _order(x, own, groups, steps, inputs)
    grouped = bool(groups) or kept not in (outputs + inputs, inputs + outputs)
    if grouped:
        order = groups + outputs + inputs
        handler: Handler = GroupedWeight([sizes[label] for label in order], [order.index(label) for label in kept])
        return PendingUse(weight, handler, v, view)
    return PendingUse(weight, LinearWeight() if kept == outputs + inputs else TurnedWeight(), v.squeeze(1), view)


def contraction(
    call: Call, one: Tensor, two: Tensor, labels: tuple[Labels, Labels, Labels], scale: float = 1.0
) -> list[PendingUse] | None:
    """The uses in a contraction of two operands, one of them shared, with these labels of theirs and the output's."""
    first, second, out = labels
    if call.is_shared(one) and not call.is_shared(two):
        use = _weight_use(call, one, two, (first, second, out), scale)
    elif call.is_shared(two) and not call.is_shared(one):
        use = _weight_use(call, two, one, (second, first, out), scale)
    elif not call.is_shared(one):
        return []
    else:
        return None
    return None if use is None else [use]


# --- the functions -------------------------------------------------------------------------------------------------


def _matmul_labels(one: Tensor, two: Tensor) -> tuple[Labels, Labels, Labels]:
    most = max(one.dim(), two.dim()) - 2
    batch = list(range(most))
    left = ["k"] if one.dim() == 1 else [*batch[most - (one.dim() - 2) :], "i", "k"]
    right = ["k"] if two.dim() == 1 else [*batch[most - (two.dim() - 2) :], "k", "j"]
    out = [*batch, *(["i"] if one.dim() > 1 else []), *(["j"] if two.dim() > 1 else [])]
    return left, right, out


def _matmul(call: Call) -> list[PendingUse] | None:
    one, two = call.arguments["input"], call.arguments["other"]
    return contraction(call, one, two, _matmul_labels(one, two))


def _added(call: Call) -> list[PendingUse] | None:
    """Something plus a product: ``addmm`` and its kin."""
    given = call.arguments
    one, two = given["one"], given["two"]
    beta, alpha = given.get("beta", 1), given.get("alpha", 1)
    labels = _matmul_labels(one, two)
    found = contraction(call, one, two, labels, alpha)
    if found is None or not call.is_shared(given["input"]):
        return found
    data, own = (two, labels[1]) if call.layout(one) is None else (one, labels[0])
    layout = call.layout(data)
    if layout is None or own[layout.dim] not in labels[2]:
        return None
    where = layout.at(labels[2].index(own[layout.dim]))
    use = None if where is None else broadcast_use(given["input"], where, len(labels[2]), scale=beta)
    return None if use is None else [*found, use]


def _parse(equation: str, dims: Sequence[int]) -> list[Labels] | None:
    """The labels of operands and output, with the dimensions of an ellipsis numbered from the right."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(dims):
        return None
    if not arrow:
        letters = [letter for letter in left if letter.isalpha()]
        right = ("..." if "..." in left else "") + "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    named = [len(part.replace("...", "")) for part in parts]
    widest = max([dim - count for dim, count in zip(dims, named, strict=True)], default=0)
    found = []
    for part, size in zip([*parts, right], [d - n for d, n in zip(dims, named, strict=True)] + [widest], strict=True):
        before, dots, after = part.partition("...")
        found.append([*before, *(range(widest - size, widest) if dots else ()), *after])
    return found


@register(torch.einsum, ("equation", "one", "two", "three"))
def _einsum(call: Call) -> list[PendingUse] | None:
    given = call.arguments
    equation, one, two = given["equation"], given.get("one"), given.get("two")
    if isinstance(one, list | tuple) and len(one) == 2:
        one, two = one
    if not isinstance(equation, str) or "three" in given or not isinstance(two, Tensor):
        return None
    labels = _parse(equation, [one.dim(), two.dim()])
    return None if labels is None else contraction(call, one, two, (labels[0], labels[1], labels[2]))


@register(torch.tensordot, ("a", "b", "dims"))
def _tensordot(call: Call) -> list[PendingUse] | None:
    one, two, dims = call.arguments["a"], call.arguments["b"], call.arguments.get("dims", 2)
    if isinstance(dims, Tensor):
        return None
    if isinstance(dims, int):
        dims = list(range(one.dim() - dims, one.dim())), list(range(dims))
    pairs = list(zip(*([d % x.dim() for d in own] for own, x in zip(dims, (one, two), strict=True)), strict=True))
    first: Labels = [("a", d) for d in range(one.dim())]
    second: Labels = [("b", d) for d in range(two.dim())]
    for d, e in pairs:
        second[e] = first[d]
    out = [label for label in first + second if label not in {first[d] for d, _ in pairs}]
    return contraction(call, one, two, (first, second, out))


_function: Any
for _function in (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.mm, Tensor.mm, torch.mv, Tensor.mv):
    register(_function, ("input", "other"))(_matmul)
register(torch.linalg.matmul, ("input", "other"))(_matmul)
register(Tensor.__rmatmul__, ("other", "input"))(_matmul)
for _function in (torch.bmm, Tensor.bmm):
    register(_function, ("input", "other"))(_matmul)
for _function in (torch.addmm, Tensor.addmm, torch.addmv, Tensor.addmv, torch.baddbmm, Tensor.baddbmm):
    register(_function, ("input", "one", "two"))(_added)
