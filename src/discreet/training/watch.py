"""Seeing every use of every parameter in a forward pass, without touching the model.

``Watch`` is a torch function mode. While a watched module runs, each torch function that is called on a parameter (or on
something made of parameters alone) goes through it. The function runs on the parameter's value, detached: autograd then
never computes an ordinary weight gradient. The output carries a hook that receives its gradient, and the pair of what
the call saw and what came back is a ``Use``, from which the records' gradients follow by the call's rule.

Where the records are in a tensor is found by a probe: before the first pass, the module runs once on two records, and the
dimensions whose size follows the number of records hold them. So ``batch_first=False``, flattened batches, and tables
looked up once for all records are told apart even where sizes coincide.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from discreet.errors import DiscreetError, extra
from discreet.training import recurrent
from discreet.training.calls import PLANS, Call, Layout, Planned, arguments
from discreet.training.fallback import Broadcast, Recomputed
from discreet.training.rules import Rule, Spread

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn
    from torch.overrides import TorchFunctionMode
    from torch.utils import _pytree as pytree

__all__ = ["MixedRecords", "Use", "Watch"]


class MixedRecords(DiscreetError):
    """A model or a loss lets one record's gradient depend on another record."""


@dataclass(slots=True)
class Use:
    """One use of a shared tensor, after its backward pass."""

    target: Tensor
    rule: Rule
    activations: Any
    gradients: Tensor | None
    instances: Tensor | None = None


@dataclass(frozen=True, slots=True)
class _Seen:
    """A tensor of the probe: its shape, and whether copies of a record alternate in its first dimension (none: unclear)."""

    shape: torch.Size
    interleaved: bool | None


@dataclass(frozen=True, slots=True)
class _Place:
    dim: int
    folded: bool
    interleaved: bool


def _seen(x: Tensor, copies: int) -> _Seen:
    """All records of the probe are copies of one, so equal blocks show in which order their entries are."""
    if not x.dim() or x.shape[0] <= copies or x.shape[0] % copies or not x.numel():
        return _Seen(x.shape, False)
    blocks, turns = x.unflatten(0, (copies, -1)).double(), x.unflatten(0, (-1, copies)).double()
    one_after_another = float((blocks[0] - blocks[1]).abs().max())
    in_turns = float((turns[:, 0] - turns[:, 1]).abs().max())
    small = 1e-4 * max(one_after_another, in_turns)
    return _Seen(x.shape, None if one_after_another <= small and in_turns <= small else in_turns < one_after_another)


def _without_dropout(func: Any, args: Any, kwargs: Any) -> Any:
    """A call of the probe. Chance would make copies of a record differ."""
    if "dropout" in getattr(func, "__name__", ""):
        return args[0]
    if func is F.scaled_dot_product_attention:
        args, kwargs = (*args[:4], 0.0, *args[5:]) if len(args) > 4 else args, kwargs | ({} if len(args) > 4 else {"dropout_p": 0.0})
    return func(*args, **kwargs)


class _Tap(torch.autograd.Function):
    """Gives a tensor that nothing requires a gradient of a place in the graph. Marked as changed in place, so that the
    tensor itself goes on: in-place functions may follow."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, receive: Callable[[Tensor], None]) -> Tensor:
        ctx.mark_dirty(x)
        ctx.receive = receive
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[None, None, None]:
        ctx.receive(gradients[0])
        return None, None, None


def _inside(function: Any) -> Any:
    """The same Python function without its first question, whether something wants to handle it."""
    return types.FunctionType(function.__code__, {**function.__globals__, "has_torch_function": lambda *_: False},
                              function.__name__, function.__defaults__, function.__closure__)


_OPENED: dict[Any, Callable[..., Any]] = {F.multi_head_attention_forward: _inside(F.multi_head_attention_forward),
                                          **recurrent.OPENED}
_OPENED[F.multi_head_attention_forward].__kwdefaults__ = F.multi_head_attention_forward.__kwdefaults__
_SPREAD = {torch.Tensor.expand, torch.Tensor.expand_as, torch.Tensor.broadcast_to, torch.broadcast_to, torch.Tensor.repeat}
_QUESTIONS = {"__get__", "__set__", "size", "dim", "numel", "is_floating_point", "stride", "is_contiguous", "type", "ndimension",
              "requires_grad_", "__len__", "__repr__", "__hash__", "data_ptr", "is_complex", "get_device", "nelement"}


class Watch(TorchFunctionMode):
    """Collects the uses of ``parameters`` in forward and backward passes over ``records`` records."""

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.names = {id(p): name for name, p in parameters.items()}
        self.records: int | None = None
        self.uses: list[Use] = []
        self._formed: dict[int, Use] = {}
        self._parameters = list(parameters.values())
        self._shared: dict[int, Tensor] = {id(p): p for p in self._parameters}
        self._anchor: Tensor | None = None
        self._position, self._probing = 0, False
        self._shapes: list[tuple[Any, list[_Seen]]] = []
        self._layouts: dict[tuple[Any, ...], dict[int, tuple[Any, list[_Place | None]]]] = {}
        self._known: dict[int, tuple[Any, list[_Place | None]]] | None = None
        self._probed, self._unsure = 0, False
        self._depth = 0
        self.path: list[str] = []

    # --- entering and leaving a module ---------------------------------------------------------------------------

    def attach(self, model: nn.Module) -> list[Any]:
        """Watch every call of the model or of one of its modules; returns the handles that undo it."""
        handles: list[Any] = []
        for name, module in model.named_modules():
            handles.append(module.register_forward_pre_hook(self._entering(name), with_kwargs=True))
            handles.append(module.register_forward_hook(self._leaving, always_call=True))
        return handles

    def _entering(self, name: str) -> Callable[..., None]:
        def enter(module: nn.Module, args: Any, kwargs: Any) -> None:
            self.path.append(name)
            self._depth += 1
            if self._depth == 1 and not self._probing:
                if torch.is_grad_enabled():
                    self._prepare(module, args, kwargs)
                self._position = 0
                self.__enter__()

        return enter

    def _leaving(self, *_: Any) -> None:
        self._depth -= 1
        if self.path:
            self.path.pop()
        if self._depth == 0 and not self._probing:
            self.__exit__(None, None, None)

    def clear(self) -> None:
        """Forget every use."""
        self.uses.clear()
        self._formed.clear()
        self._shared = {id(p): p for p in self._parameters}

    # --- where the records are -----------------------------------------------------------------------------------

    def _prepare(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Probe a module the first time it is called in this way."""
        inputs = [leaf for leaf in _tensors((args, kwargs)) if leaf.dim()]
        if self.records is None and inputs:
            self.records = inputs[0].shape[0]
        key = (id(module), module.training, tuple((x.dim(), x.dtype) for x in inputs))
        if key in self._layouts and not self._unsure:
            self._known, self._shapes = self._layouts[key], []
            return
        self._known, self._unsure = self._layouts.setdefault(key, {}), False
        self._known.clear()
        self._shapes = self._probe(module, args, kwargs)

    def _probe(self, module: nn.Module, args: Any, kwargs: Any) -> list[tuple[Any, list[_Seen]]]:
        """Every call's tensors when the module runs on two copies of a record (three, where the batch has two)."""
        assert self.records is not None
        self._probed = 3 if self.records == 2 else 2

        def few(x: Any) -> Any:
            if not isinstance(x, Tensor) or not x.dim():
                return x
            dim = next((d for d in range(min(2, x.dim())) if x.shape[d] == self.records), None)
            if dim is None:
                return x.detach()
            one = x.detach().narrow(dim, 0, 1)
            if x.is_floating_point():  # no need of the data: numbers from 0 to 1, all different
                one = torch.linspace(0, 1, one.numel(), dtype=x.dtype, device=x.device).view(one.shape)
            return one.repeat_interleave(self._probed, dim)

        small = pytree.tree_map(few, (args, kwargs))
        buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
        self._shapes, self._position, self._probing = [], 0, True
        depth, path = self._depth, list(self.path)
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=[]), self:
                module.forward(*small[0], **small[1])
        except Exception:  # a model that cannot run on two records is read by sizes alone
            self._shapes = []
        finally:
            self._probing, self._depth, self.path = False, depth, path
            with torch.no_grad():
                for buffer, kept in buffers:
                    buffer.copy_(kept)
        return self._shapes

    def _where(self, function: Any, leaves: list[Tensor]) -> list[Layout | None]:
        """The layout of each tensor of the call at the present position."""
        assert self._known is not None
        known = self._known.get(self._position)
        if known is None or known[0] is not function or len(known[1]) != len(leaves):
            known = (function, self._compared(function, leaves))
            self._known[self._position] = known
        found: list[Layout | None] = []
        for leaf, place in zip(leaves, known[1], strict=True):
            if place is None:
                found.append(None)
                continue
            fold, rest = divmod(leaf.shape[place.dim], self.records or 1)
            if rest or not fold or (fold > 1 and not place.folded):
                raise MixedRecords(
                    f"{self._name(function)} at {self._location()} has {leaf.shape[place.dim]} entries where the batch has "
                    f"{self.records} records. Call the model on the batch as the loader gave it.")
            found.append(Layout(place.dim, fold, place.interleaved and fold > 1))
        return found

    def _compared(self, function: Any, leaves: list[Tensor]) -> list[_Place | None]:
        before = self._shapes[self._position] if self._position < len(self._shapes) else None
        if before is None or before[0] is not function or len(before[1]) != len(leaves):
            return [self._guessed(leaf) for leaf in leaves]
        return [self._differing(function, leaf.shape, seen) for leaf, seen in zip(leaves, before[1], strict=True)]

    def _differing(self, function: Any, now: torch.Size, seen: _Seen) -> _Place | None:
        if len(now) != len(seen.shape):
            return None
        moved = [d for d in range(len(now)) if now[d] != seen.shape[d]]
        if len(moved) > 1:
            raise MixedRecords(f"{self._name(function)} at {self._location()} has the records in more than one dimension: "
                               "it compares records with each other, so no record has a gradient of its own.")
        if not moved:
            return None
        folded = now[moved[0]] != self.records
        self._unsure |= folded and seen.interleaved is None
        return _Place(moved[0], folded, bool(seen.interleaved))

    def _guessed(self, leaf: Tensor) -> _Place | None:
        if id(leaf) in self._shared:
            return None
        dim = next((d for d in range(min(2, leaf.dim())) if leaf.shape[d] == self.records), None)
        return None if dim is None else _Place(dim, False, False)

    def _location(self) -> str:
        return f"module {self.path[-1]!r}" if self.path and self.path[-1] else "the model"

    @staticmethod
    def _name(function: Any) -> str:
        return str(getattr(function, "__name__", function))

    # --- one call ------------------------------------------------------------------------------------------------

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in _QUESTIONS:
            return func(*args, **kwargs)
        if func in _OPENED and (self._probing or (torch.is_grad_enabled() and self._touches(args, kwargs))):
            with self:
                return _OPENED[func](*args, **kwargs)
        self._position += 1
        if self._probing:
            output = _without_dropout(func, args, kwargs)
            while len(self._shapes) <= self._position:
                self._shapes.append((None, []))
            self._shapes[self._position] = (func, [_seen(leaf, self._probed) for leaf in _tensors((args, kwargs, output))])
            return output
        if not torch.is_grad_enabled() or not self._touches(args, kwargs):
            return func(*args, **kwargs)
        return self._shared_call(func, args, kwargs)

    def _touches(self, args: Any, kwargs: Any) -> bool:
        for x in args:
            if id(x) in self._shared or (type(x) in (list, tuple) and any(id(y) in self._shared for y in x)):
                return True
        return bool(kwargs) and any(id(x) in self._shared for x in kwargs.values())

    def _shared_call(self, func: Any, args: Any, kwargs: Any) -> Any:
        inplace = _out_of_place(func)
        if inplace is not None:
            with self:
                return args[0].copy_(inplace(*args, **kwargs))
        inputs = _tensors((args, kwargs))
        output = func(*_bare(args, self._shared), **_bare(kwargs, self._shared))
        outputs = _tensors(output)
        if not any(x.is_floating_point() for x in outputs):
            return output
        places = self._where(func, inputs + outputs)
        layouts = {id(x): place for x, place in zip(inputs, places, strict=False) if place is not None}
        where = places[len(inputs):]
        if not any(where):
            return self._derived(func, args, kwargs)
        planned = None
        if func in PLANS and layouts and len(outputs) == 1:
            call = Call(func, arguments(func, args, kwargs), self.records or 0, self._shared, layouts, self._location)
            planned = PLANS[func](call)
        if planned is not None:
            return self._tapped(output, planned)
        if not layouts:
            return self._spread(func, args, kwargs, output, where[0])
        return self._recomputed(func, args, kwargs, output, layouts, where)

    def _derived(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Something made of parameters alone: it keeps its graph, and its uses are pulled back through it."""
        output = func(*args, **kwargs)
        for x in _tensors(output):
            if x.requires_grad:
                self._shared[id(x)] = x
        return output

    def _tapped(self, output: Tensor, planned: list[Planned]) -> Tensor:
        """The output, which will hand its gradient to the rules."""
        done = False

        def receive(gradient: Tensor) -> None:
            nonlocal done
            if done or torch.is_grad_enabled():
                raise MixedRecords("A backward pass went through the same forward pass twice, or will itself be "
                                   "differentiated (a gradient penalty): add the losses up and call backward once.")
            done = True
            for use in planned:
                self._received(use, use.view(gradient))
            planned.clear()

        if output.requires_grad:
            output.register_hook(receive)
            return output
        if self._anchor is None:
            self._anchor = torch.zeros((), requires_grad=True)
        if output._is_view():  # a view of a parameter must not be marked as changed
            output = output.clone()
        return _Tap.apply(output, self._anchor, receive)  # type: ignore[no-any-return]

    def _received(self, planned: Planned, gradient: Tensor) -> None:
        dtype = planned.target.dtype
        rule, saved = planned.rule, _cast(planned.activations, dtype)
        gradient = gradient.to(dtype)
        use = Use(planned.target, rule, saved, gradient)
        if rule.prefers_instances(saved, gradient):
            earlier = self._formed.get(id(use.target))
            if earlier is not None and earlier.instances is not None:
                earlier.instances = earlier.instances + rule.instantiate(saved, gradient)
                return
            use.instances, use.activations, use.gradients = rule.instantiate(saved, gradient), None, None
            self._formed[id(use.target)] = use
        self.uses.append(use)

    # --- calls without a plan ------------------------------------------------------------------------------------

    def _spread(self, func: Any, args: Any, kwargs: Any, output: Tensor, layout: Layout | None) -> Tensor:
        assert layout is not None
        target = next(x for x in _tensors((args, kwargs)) if id(x) in self._shared)
        rest = [size for d, size in enumerate(output.shape) if d != layout.dim]
        plain = func in _SPREAD and layout.fold == 1 and _broadcasts(target.shape, layout.dim - output.dim(), rest)
        if plain:
            shape, dim = target.shape, layout.dim - output.dim()
            if len(shape) >= -dim:  # the record's own dimension is there, of size one
                flat = torch.Size([*shape[:len(shape) + dim], *shape[len(shape) + dim + 1:]])
                rule: Rule = _Shaped(Spread(flat), shape)
            else:
                rule = Spread(shape)
            return self._tapped(output, [Planned(target, rule, None, layout.first)])
        with torch.enable_grad():
            graph = func(*args, **kwargs)
        planned = [Planned(x, Broadcast(graph, x, layout.apart), None, layout.apart)
                   for x in _tensors((args, kwargs)) if id(x) in self._shared]
        return self._tapped(output, planned)

    def _recomputed(self, func: Any, args: Any, kwargs: Any, output: Any, layouts: dict[int, Layout],
                    where: list[Layout | None]) -> Any:
        leaves, tree = pytree.tree_flatten((args, kwargs))
        shared = {id(x): x.detach() for x in leaves if isinstance(x, Tensor) and id(x) in self._shared}
        batched = {id(x): x for x in leaves if isinstance(x, Tensor) and id(x) in layouts}
        ids, kept = [id(x) for x in leaves], [x.detach() if isinstance(x, Tensor) else x for x in leaves]
        parts = [layouts[key].apart(x.detach()) for key, x in batched.items()]
        outputs, out_tree = pytree.tree_flatten(output)
        for number, (one, layout) in enumerate(zip(outputs, where, strict=True)):
            if not isinstance(one, Tensor) or not one.is_floating_point():
                continue
            if layout is None:
                raise MixedRecords(f"{self._name(func)} at {self._location()} gives an output without records from inputs "
                                   "with records: it mixes them.")

            def run(values: list[Tensor], rows: list[Tensor], number: int = number, layout: Layout = layout) -> Tensor:
                at = dict(zip(shared, values, strict=True))
                at |= {key: _restored(row, layouts[key]) for key, row in zip(batched, rows, strict=True)}
                again = pytree.tree_unflatten([at.get(key, x) for key, x in zip(ids, kept, strict=True)], tree)
                found = pytree.tree_leaves(func(*again[0], **again[1]))[number]
                return _unrestored(found, layout)

            values = tuple(shared.values())
            planned = [Planned(self._shared[key], Recomputed(run, values, i), parts,
                               layout.apart) for i, key in enumerate(shared)]
            outputs[number] = self._tapped(one, planned)
        return pytree.tree_unflatten(outputs, out_tree)


def _restored(row: Tensor, layout: Layout) -> Tensor:
    return row.movedim(0, layout.dim) if layout.fold == 1 else row.squeeze(0)


def _unrestored(output: Tensor, layout: Layout) -> Tensor:
    return output.movedim(layout.dim, 0) if layout.fold == 1 else output.unsqueeze(0)


class _Shaped(Rule):
    """A rule whose gradients get back a dimension of size one."""

    eager = True

    def __init__(self, rule: Rule, shape: torch.Size) -> None:
        self.rule, self.shape = rule, shape

    def instantiate(self, activations: Any, output_gradients: Tensor) -> Tensor:
        """As the rule, reshaped."""
        found = self.rule.instantiate(activations, output_gradients)
        return found.reshape(found.shape[0], *self.shape)


def _broadcasts(shape: torch.Size, dim: int, rest: list[int]) -> bool:
    """Whether an output is the shared tensor broadcast, with the records at ``dim`` (from the end)."""
    own = list(shape)
    if len(own) >= -dim:
        if own[dim] != 1:
            return False
        del own[len(own) + dim]
    return all(a in (1, b) for a, b in zip(reversed(own), reversed(rest), strict=False)) and len(own) <= len(rest)


def _tensors(tree: Any) -> list[Tensor]:
    """The tensors in nested arguments; a dictionary's in the order of its keys' insertion."""
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = tree.values()
    elif not isinstance(tree, (tuple, list)):
        return []
    found: list[Tensor] = []
    for part in tree:
        if isinstance(part, Tensor):
            found.append(part)
        elif isinstance(part, (tuple, list, dict)):
            found += _tensors(part)
    return found


def _bare(tree: Any, shared: dict[int, Tensor]) -> Any:
    """The same arguments with shared tensors cut from their graph."""
    if isinstance(tree, Tensor):
        return tree.detach() if id(tree) in shared else tree
    if isinstance(tree, dict):
        return {key: _bare(value, shared) for key, value in tree.items()}
    if type(tree) in (tuple, list):
        return type(tree)([_bare(part, shared) for part in tree])
    return tree


def _cast(saved: Any, dtype: torch.dtype) -> Any:
    if isinstance(saved, Tensor) and saved.is_floating_point() and saved.dtype != dtype:
        return saved.to(dtype)
    return [_cast(x, dtype) for x in saved] if isinstance(saved, list) else saved


def _out_of_place(func: Any) -> Any:
    """The ordinary form of an in-place method, if it is one."""
    name = getattr(func, "__name__", "")
    if name.startswith("__i") and name.endswith("__") and hasattr(Tensor, f"__{name[3:]}"):
        return getattr(Tensor, f"__{name[3:]}") if name not in ("__index__", "__int__", "__invert__") else None
    if name.endswith("_") and not name.endswith("__") and hasattr(Tensor, name[:-1]) and getattr(Tensor, name, None) is func:
        return getattr(Tensor, name[:-1])
    return None


@contextmanager
def watching(model: nn.Module, watch: Watch) -> Iterator[Watch]:
    """Watch a model for the length of a block."""
    handles = watch.attach(model)
    try:
        yield watch
    finally:
        for handle in handles:
            handle.remove()
