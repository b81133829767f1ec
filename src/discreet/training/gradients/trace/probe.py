"""A probe: a module run on a few copies of one record, to read where the records are (``places``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from discreet.errors import extra
from discreet.training.errors import MixedRecords
from discreet.training.gradients.state import State
from discreet.training.gradients.trace.dispatch import picked_from
from discreet.training.gradients.trace.functions import OPENED, WITH_PARAMETERS, only_asks, out_of_place, whole
from discreet.training.gradients.trace.places import Places, Positions, records_of
from discreet.training.gradients.trace.random_draws import CHANCE
from discreet.training.gradients.trace.trees import mapped, tensors

with extra("torch"):
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn
    from torch.autograd.graph import saved_tensors_hooks
    from torch.overrides import TorchFunctionMode

__all__ = ["probe_records"]


def _copies(tree: Any, records: int, count: int, *, other: bool = False) -> Any:
    """``count`` copies of one record, with invented numbers in place of the data's; or with another record for the
    first."""

    def few(x: Tensor) -> Tensor:
        dim = records_of(x, records)
        if dim is None:
            return x.detach()
        one = x.detach().narrow(dim, 0, 1)
        if x.is_floating_point():  # from 0 to 1, all different
            one = torch.linspace(0, 1, one.numel(), dtype=x.dtype, device=x.device).view(one.shape)
        some = one.repeat_interleave(count, dim)
        if other:
            last = x.detach().narrow(dim, records - 1, 1)
            some.narrow(dim, 0, 1).copy_(one.square() + 1 if x.is_floating_point() else last)
        return some

    return mapped(few, tree)


@contextmanager
def _leave_no_trace(module: nn.Module) -> Any:
    """Run a module without leaving a trace: no graph, no used-up random numbers, no changed state.

    Tensors saved for a backward pass stay out of sight of whoever counts them (gradient checkpointing does).
    """
    before = State(module)
    allowed: Any = torch._C._autograd._saved_tensors_hooks_is_enabled  # type: ignore[attr-defined]
    # Detached, because a node that saves its own output as it is would keep itself alive.
    hidden = saved_tensors_hooks(Tensor.detach, _same) if allowed() else nullcontext()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]), hidden:
            yield
    finally:
        before.restore()


def _same(x: Any) -> Any:
    return x


def _without_dropout(func: Any, args: Any, kwargs: Any, run: Callable[..., Any]) -> Any:
    """A call without chance, which would make copies of a record differ."""
    if "dropout" in getattr(func, "__name__", ""):
        return args[0]
    if func is F.scaled_dot_product_attention:
        if len(args) > 4:
            args = (*args[:4], 0.0, *args[5:])
        else:
            kwargs = kwargs | {"dropout_p": 0.0}
    return run(*args, **kwargs)


def _draw_alike(output: Any, count: int) -> Any:
    """What was drawn, for all copies of the record what was drawn for the first: by their draws they would differ."""
    for x in (y.detach() for y in tensors(output)):
        dim = records_of(x, count)
        if dim is not None:
            x.copy_(x.narrow(dim, 0, 1).clone().expand_as(x))
        elif x.dim() and x.shape[0] % count == 0:  # several rows a record, one record's after another's
            x.copy_(x[: x.shape[0] // count].repeat(count, *[1] * (x.dim() - 1)))
    return output


class _Probe(TorchFunctionMode):
    """Notes the tensors of every call that touches a parameter, in the order of calls; dropout is off, and other draws
    are alike for all copies."""

    def __init__(self, places: Places, shared: Mapping[int, Tensor], given: Any, *, again: bool) -> None:
        super().__init__()
        self.handled: nn.Module | None = None  # a module with handlers of its own that is running
        self.positions = Positions()
        self._places, self._shared, self._again = places, dict(shared), again
        self._strict = dict(shared)  # of what is followed as parameters are, what is made of these alone
        self._origins, self._sources = Origins(tensors(given)), dict[int, Tensor]()

    def open(self, module: nn.Module) -> None:
        """Such a module begins: its calls are not looked at."""
        self.handled = module

    def close(self, module: nn.Module, args: Any, output: Any) -> Any:
        """It ends."""
        self.handled = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, opened = kwargs or {}, func in WITH_PARAMETERS
        touched = any(id(x) in self._shared for x in tensors((args, kwargs)))
        if self.handled is not None or (not opened and only_asks(func, len(args) + len(kwargs))):
            output = func(*args, **kwargs)
            self._follow(func, args, kwargs, output, touched)
            return output
        self.positions.advance(func)
        if opened and touched:
            with self.positions.inside(), self:
                output = _without_dropout(func, args, kwargs, WITH_PARAMETERS[func])
            if func is Tensor.__setitem__:
                self._follow(func, args, kwargs, args[0], touched)
            return output
        output = self._without_chance(func, args, kwargs)
        if touched:
            self.look(self.positions.now, func, [whole(x) for x in tensors((args, kwargs, output))])
        elif (source := picked_from(func, args, kwargs)) is not None and id(source) not in self._sources:
            self.look(self.positions.source(len(self._sources)), Tensor.__getitem__, [source])
            self._sources[id(source)] = source
        self._follow(func, args, kwargs, output, touched)
        return output

    def _follow(self, func: Any, args: Any, kwargs: Any, output: Any, touched: bool) -> None:
        """What is made of parameters and constants is followed as parameters are."""
        if not self._origins.follow(func, args, kwargs, output) and touched:
            self._shared |= {id(x): x for x in tensors(output)}
            if all(id(x) in self._strict for x in tensors((args, kwargs))):
                self._strict |= {id(x): x for x in tensors(output)}

    def look(self, position: Any, func: Any, found: list[Tensor]) -> None:
        """Note the tensors of a call, or compare them with those of the first probe."""
        if self._again:
            self._places.compare(position, func, found)
        else:
            self._places.note(position, func, found, self._strict)

    def _without_chance(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func not in OPENED:
            output = _without_dropout(func, args, kwargs, func)
            permuted = func is torch.randperm  # whose numbers must all differ
            drawn = getattr(func, "__name__", "") in CHANCE and not permuted
            return _draw_alike(output, self._places.count) if drawn else output
        with self.positions.inside(), self:  # frozen, so one call in a real pass: opened only for the dropout inside
            return OPENED[func](*args, **kwargs)


def probe_records(
    module: nn.Module,
    args: Any,
    kwargs: Any,
    records: int,
    shared: Mapping[int, Tensor],
    using: Callable[[Any], Any],
) -> Places:
    """Run a module on two copies of a record (three, where the batch has two) and read where the records are.

    ``using`` makes the hooks of modules tell a probe what they tell an interception. The run is as a real pass sees it
    (with gradients: some modules take another way without), and leaves no trace.
    """
    places = Places(3 if records == 2 else 2)
    try:
        for again in (False, True):
            if again and not places.unclear:
                break
            small = _copies((args, kwargs), records, places.count, other=again)
            probe = _Probe(places, shared, small, again=again)
            with _leave_no_trace(module), torch.enable_grad(), using(probe), probe:
                output = module(*small[0], **small[1])
                probe.look(0, type(module), [x for x in tensors(output) if x.is_floating_point()])
    except MixedRecords:
        raise
    except Exception:  # a model that cannot run on two records is read by sizes alone; verification judges what comes
        places.forget()
    return places


class Origins:
    """The tensors of a probe that come from its records. What does not, is made of parameters and constants, like
    them."""

    def __init__(self, inputs: Iterable[Tensor] = ()) -> None:
        self._from_records = {id(x): x for x in inputs}  # held: an identity is one while the tensor lives

    def follow(self, func: Any, args: Any, kwargs: Any, output: Any) -> bool:
        """Whether a call took something that comes from records; what it gave does then, too."""
        known = self._from_records
        if not any(id(x) in known for x in tensors((args, kwargs))):
            return False
        changed = getattr(func, "__name__", "") == "__setitem__" or out_of_place(func) is not None
        known |= {id(x): x for x in tensors((output, args[0] if changed else ()))}
        return True
