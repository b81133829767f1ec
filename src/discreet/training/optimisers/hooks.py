"""What a private optimiser does beside its own step: it asks the run for a noisy gradient, and refuses any other."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

from discreet.errors import extra
from discreet.training.errors import PrivateTrainingError
from discreet.training.optimisers.admission import describe_place, held_by
from discreet.training.optimisers.marks import MARK, mark_of, with_mark, without_mark
from discreet.training.optimisers.schedulers import follow_private_steps
from discreet.training.run import Run
from discreet.training.verification.listening import Listening

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.optim import Optimizer
    from torch.overrides import _get_current_function_mode_stack

__all__ = ["OptimizerHooks"]


class OptimizerHooks:
    """Stands between an optimiser's ``step`` and ``zero_grad`` and the gradients of the parameters."""

    def __init__(self, run: Run) -> None:
        self._run, self._parameters = run, run.trained
        # what the model calls and what the optimiser has: the same, or its shards
        both = run.clipped.parameters, run.trained
        self._known = {id(p): (name, p) for known in both for name, p in known.items()}
        self._paused: list[Listening] = []
        self._followed = -1  # the loop whose schedulers stand still between pieces

    def attach(self, optimizer: Optimizer) -> None:
        """Take the optimiser's hooks, for good."""
        optimizer.register_step_pre_hook(self.before_step)
        optimizer.register_step_post_hook(self.listen_on)
        optimizer._step_supports_amp_scaling = True  # type: ignore[attr-defined]  # a scaler leaves it to the step
        optimizer.register_state_dict_post_hook(self.mark_state)
        optimizer.register_load_state_dict_pre_hook(self.follow_state)
        for group in optimizer.param_groups:  # of a state that was loaded before
            group.pop(MARK, None)
        self._run.call_at_batches(self.clear_gradients)
        optimizer.zero_grad, optimizer.__reduce_ex__ = self.zero_grad, self._run.__reduce_ex__  # type: ignore[method-assign]

    def mark_state(self, optimizer: Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        """Let the optimiser's state say which run it is of, and after which step."""
        return {**state, "param_groups": with_mark(state["param_groups"], self._run.mark)}

    def follow_state(self, optimizer: Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        """A state is loaded: one of a private run brings its count; any other is a beginning like any other."""
        mark = mark_of(state["param_groups"])
        if mark is not None and not self._run.restoring:
            self._run.follow_mark(mark)
        return {**state, "param_groups": without_mark(state["param_groups"])}

    def before_step(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Turn what the backward passes brought into a noisy gradient; a piece of a batch is only added up.

        A closure is called here, once: the optimiser's own call would come after the gradient was made.
        """
        run = self._run
        _refuse_scaler(optimizer)
        run.refuse_step()
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        answer = None if closure is None else _call_once(closure)
        run.verification.stop()
        self._paused = _pause_listeners()
        try:
            run.refuse_step()  # a closure may have taken it
            gradient = run.take_step(lambda: self._refuse(optimizer))
            if gradient is None:  # of a piece: the optimiser passes over parameters without a gradient
                self.clear_gradients()
            else:
                self._set_gradients(gradient)
        except BaseException:
            self.after_step()
            raise
        return None if closure is None else ((args[0], answer), {})

    def _refuse(self, optimizer: Optimizer) -> None:
        self._run.chance.refuse()
        _refuse_new_parameters(self._run.model, optimizer, self._known)
        _refuse_gradients(self._known.values())

    def listen_on(self, *_: Any) -> None:
        """The step is over: what the loop still does with a verified batch is heard."""
        self.after_step()
        self._run.verification.listen_on()
        if self._run.between_pieces and self._followed != self._run.loop:  # once a loop: schedulers are made before it
            self._followed = self._run.loop
            follow_private_steps()

    def after_step(self, *_: Any) -> None:
        """The pass is over, and other runs' tapes listen again."""
        self._run.chance.end()
        for tape in self._paused:
            tape.resume()
        self._paused = []

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget what backward passes brought since the last step."""
        self._run.clipped.forget()
        self.clear_gradients()

    def clear_gradients(self) -> None:
        """Take away what the last step left: until the next one there are no gradients, and clipping does nothing."""
        for p in self._parameters.values():
            p.grad = None

    def _set_gradients(self, parts: Sequence[Tensor]) -> None:
        for p, part in zip(self._parameters.values(), parts, strict=True):
            if not p.requires_grad:  # frozen on the way
                p.grad = None
                continue
            p.grad = part if part.dtype == p.dtype and part.device == p.device else part.to(p)


def _pause_listeners() -> list[Listening]:
    """Listeners of other runs, which from now on do not hear of a private step: what it releases is public."""
    others = [x for x in _get_current_function_mode_stack() if isinstance(x, Listening) and not x.finished]
    for listener in others:
        listener.pause()
    return others


def _refuse_new_parameters(model: nn.Module, optimizer: Optimizer, known: Container[int]) -> None:
    """Refuse parameters that came, or were unfrozen, after the plan was made."""
    for module in model.modules():  # this runs at every step, and names take a while
        for p in module._parameters.values():
            if p is not None and p.requires_grad and id(p) not in known:
                name = next(name for name, other in model.named_parameters() if other is p)
                raise PrivateTrainingError(
                    f"Parameter {name!r} came or was unfrozen after make_private, so nothing would clip "
                    "its gradient. Freeze it with requires_grad_(False), or make a new plan."
                )
    for number, place, other in held_by(optimizer):
        if other.requires_grad and id(other) not in known:
            raise PrivateTrainingError(
                f"The {describe_place(number, place, other)} was added after make_private, so nothing would "
                "clip its gradient. Remove it, or make a new plan."
            )


def _refuse_gradients(trained: Iterable[tuple[str, Tensor]]) -> None:
    """Refuse gradients and hooks on them: there are none between a batch and its step, so none can be ours."""
    for name, p in trained:
        if p._backward_hooks or p._post_accumulate_grad_hooks:  # type: ignore[attr-defined]
            raise PrivateTrainingError(
                f"Parameter {name!r} has a hook on its gradient, which never runs: the gradient of a "
                "private step is made after the backward pass. Remove the hook."
            )
        if p.grad is not None and bool(p.grad.any()):
            p.grad = None
            raise PrivateTrainingError(
                f"Parameter {name!r} has a gradient that no handler saw: it was set by hand, or the parameter was used "
                "outside a call of the model or its modules, or inside a custom autograd function, torch.func.grad or "
                "a torch.vmap over the parameter itself. Use it in forward through torch functions, give its module a "
                "handler with register_layer, or freeze it with requires_grad_(False); for a penalty on weights use "
                "the optimizer's weight_decay."
            )


def _refuse_scaler(optimizer: Optimizer) -> None:
    """Refuse a step that ``GradScaler.step`` calls: to an optimiser that supports scaling it leaves these."""
    if hasattr(optimizer, "found_inf"):
        for name in ("found_inf", "grad_scale"):
            vars(optimizer).pop(name, None)
        raise PrivateTrainingError(
            "GradScaler.step was called on a private optimizer, but a scaled loss has scaled gradients, which would be "
            "clipped as if they were large. Take bfloat16, which needs no scaling: with torch.autocast(..., "
            "dtype=torch.bfloat16), loss.backward(), optimizer.step()."
        )


def _call_once(closure: Callable[[], Any]) -> Callable[[], Any]:
    """Call a closure, and give the optimiser one that repeats its answer once."""
    with torch.enable_grad():
        answers = [closure()]

    def answer() -> Any:
        if not answers:
            raise PrivateTrainingError(
                "The optimizer called its closure twice, but a batch may be used once a step: use an "
                "optimizer that needs no line search."
            )
        return answers.pop()

    return answer
