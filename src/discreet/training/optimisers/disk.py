r"""A Kalman filter before an optimiser: gradients of different steps are put together, and most of the noise is gone.

An average of the last gradients has less noise, but lags: they are gradients of where the model was. The filter first
carries its estimate on to where the model is, :math:`\tilde g + H d` for the last move d, and then corrects it with the
new gradient. No Hessian is needed: the gradient is asked for *ahead* of the model, at :math:`x + \gamma d` with
:math:`\gamma = (1-\kappa)/\kappa`, and

.. math:: \tilde g_t = (1-\kappa)\,\tilde g_{t-1} + \kappa\,\nabla f(x_t + \gamma d_{t-1})
    \approx (1-\kappa)(\tilde g_{t-1} + H d_{t-1}) + \kappa\,\nabla f(x_t).

Reference: Zhang, Balle, Hong, et al. (2025), "DiSK: differentially private optimizer with simplified Kalman filter for
noise reduction", at the γ that needs one gradient a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from discreet.errors import extra, number

with extra("torch"):
    import torch
    from torch import Tensor
    from torch.optim import Optimizer

__all__ = ["DiSK"]


class DiSK(Optimizer):
    r"""An optimiser that is given filtered gradients; ``gain`` is κ, what the newest one counts for.

    Independent noise of variance σ² becomes one of κ/(2-κ)·σ² in the long run (a third at κ = 1/2); for quadratic
    losses the filter lags behind nothing. Between steps the parameters are *ahead* of the model that is trained:
    evaluate, save and average within ``settled()``. After the last step of a private run they are the model.

    Two vectors of the model's size are kept. Learning rates are the inner optimiser's; a scheduler takes this one.

    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = DiSK(torch.optim.SGD([weight], lr=0.1), gain=0.5)
    >>> for _ in range(2):
    ...     weight.grad = weight.detach().clone()       # of weight²/2, where the weight is
    ...     optimizer.step()
    >>> with optimizer.settled():
    ...     weight.data                                 # 0.9 · 0.9: the gradient of the model itself
    tensor([0.8100])
    """

    def __init__(self, optimizer: Optimizer, *, gain: float = 0.5) -> None:
        if not isinstance(optimizer, Optimizer) or isinstance(optimizer, DiSK) or hasattr(optimizer, "privacy"):
            raise ValueError(
                "optimizer must be a torch optimizer that is neither filtered nor private yet: make_private takes the "
                "DiSK."
            )
        self.base, self.gain = optimizer, number("gain", gain, low=0, high=1, open_low=True)
        super().__init__([p for group in optimizer.param_groups for p in group["params"]], {})
        self.param_groups, self.defaults = optimizer.param_groups, optimizer.defaults
        optimizer.privacy = _Filtered(self)  # type: ignore[attr-defined]

    def check_plan(self, plan: Any) -> None:
        """Refuse, before a run begins, noise whose variance the inner optimiser asks for and a filter makes unknown."""
        if plan.noise.correlated and hasattr(self.base, "check_plan"):
            raise ValueError(
                f"noise is {type(plan.noise).__name__}, whose steps depend on each other: how much of it a filter "
                f"leaves is not known, and {type(self.base).__name__} asks for it. Use Independent()."
            )

    def __repr__(self) -> str:
        return f"DiSK({type(self.base).__name__}, gain={self.gain:g})"

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Filter, move the model, and put the parameters ahead of it."""
        answer = None
        if closure is not None:
            with torch.enable_grad():
                answer = closure()
        moving = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        before = [self._filter(p) for p in moving]  # a piece of a batch has no gradients, and moves nothing
        self.base.step()
        ahead = (1 - self.gain) / self.gain if self._goes_on() else 0.0
        for p, last in zip(moving, before, strict=True):
            self.state[p]["iterate"] = p.clone()
            p.add_(p - last, alpha=ahead)
        return answer

    def _filter(self, p: Tensor) -> Tensor:
        """Put the filtered gradient in place of the gradient and the model in place of the parameter; the model."""
        state, g, k = self.state[p], p.grad, self.gain
        assert g is not None
        fresh = self._fresh_variance(p)
        if not state:
            state["mean"], state["variance"], state["iterate"] = g.clone(), fresh, p.clone()
        else:
            state["mean"].lerp_(g, k)
            state["variance"] = (1 - k) ** 2 * state["variance"] + k**2 * fresh
        g.copy_(state["mean"])
        last: Tensor = state["iterate"]
        p.copy_(last)
        return last

    def _fresh_variance(self, p: Tensor) -> Any:
        privacy = getattr(self, "privacy", None)
        return 0.0 if privacy is None or privacy.plan.noise.correlated else privacy.noise_variance(p)

    def _goes_on(self) -> bool:
        """Whether another step may come."""
        privacy = getattr(self, "privacy", None)
        return privacy is None or privacy.remaining_steps > 0

    def iterate(self, p: Tensor) -> Tensor:
        """The model's own value of a parameter."""
        found: Tensor = self.state[p].get("iterate", p) if p in self.state else p
        return found

    @contextmanager
    def settled(self) -> Iterator[None]:
        """The parameters are the model, for the length of a block."""
        held = list(self.state)
        ahead = [p.detach().clone() for p in held]
        with torch.no_grad():
            for p in held:
                p.copy_(self.iterate(p))
        try:
            yield
        finally:
            with torch.no_grad():
                for p, value in zip(held, ahead, strict=True):
                    p.copy_(value)

    def state_dict(self) -> dict[str, Any]:
        """The filter's, and the inner optimiser's."""
        return {"filter": super().state_dict(), "optimizer": self.base.state_dict()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from there."""
        super().load_state_dict(state_dict["filter"])
        self.base.load_state_dict(state_dict["optimizer"])
        for own, inner in zip(self.param_groups, self.base.param_groups, strict=True):
            inner |= {key: value for key, value in own.items() if key not in inner}  # such as the mark of a private run
        self.param_groups = self.base.param_groups


class _Filtered:
    """What the inner optimiser may ask of the noise in its gradients."""

    def __init__(self, outer: DiSK) -> None:
        self._outer = outer

    @property
    def between_pieces(self) -> bool:
        """As of the filter: schedulers and averages of the inner optimiser ask."""
        privacy = getattr(self._outer, "privacy", None)
        return privacy is not None and bool(privacy.between_pieces)

    def noise_variance(self, p: Tensor) -> Any:
        """After the filter."""
        return self._outer.state[p]["variance"]
