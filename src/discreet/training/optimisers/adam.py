r"""Adam whose second moments are those of the gradient, not of the gradient and the noise.

A noisy gradient g + ξ has the second moment :math:`g^2 + \sigma^2`. Where noise is larger than gradients, Adam divides
all coordinates by nearly the same number and is descent with momentum. But σ² is public: it can be taken away.

Reference: Tang, Shpilevskiy and Lécuyer (2024), "DP-AdamBC: your DP-Adam is actually DP-SGD (unless you apply bias
correction)".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from discreet.errors import extra, nonnegative, number, positive

with extra("torch"):
    import torch
    from torch import Tensor
    from torch.optim import Optimizer

__all__ = ["AdamBC"]


class AdamBC(Optimizer):
    r"""Adam with bias-corrected second moments: steps of :math:`\hat m/\sqrt{\max(\hat v - \hat\Phi, f)}`.

    :math:`\hat\Phi` is the average of the noise's variance with the weights that :math:`\hat v` has, so that
    :math:`E[\hat v - \hat\Phi]` is that average of :math:`E[g^2]`, whatever schedule the noise follows. The floor f is
    ``floor`` standard errors of the estimate where there is nothing but Gaussian noise, :math:`\hat\Phi\sqrt{2\sum
    w_i^2}`, and never below ``eps``²: a second moment that cannot be told from noise is not divided by.
    ``weight_decay`` is decoupled, as AdamW's. Without noise it is Adam.

    Correlated noise is corrected for by the variance of each step's noise by itself.

    >>> weight = torch.nn.Parameter(torch.ones(2))
    >>> optimizer = AdamBC([weight], lr=0.1)
    >>> weight.grad = torch.tensor([3.0, -0.1])
    >>> optimizer.step()
    >>> weight.data
    tensor([0.9000, 1.1000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        floor: float = 1.0,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        for name, beta in zip(("betas[0]", "betas[1]"), betas, strict=True):
            number(name, beta, low=0, high=1, open_high=True)
        facts = {
            "lr": nonnegative("lr", lr),
            "betas": tuple(betas),
            "floor": nonnegative("floor", floor),
            "eps": positive("eps", eps),
            "weight_decay": nonnegative("weight_decay", weight_decay),
        }
        super().__init__(params, facts)

    def check_plan(self, plan: Any) -> None:
        """Refuse, before a run begins, noise that does not say how large it is."""
        plan.noise.begun(plan.participation, plan.steps).spread(0)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """One step with the gradients that are there; parameters without one stay."""
        answer = None
        if closure is not None:
            with torch.enable_grad():
                answer = closure()
        privacy = getattr(self, "privacy", None)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._move(p, group, 0.0 if privacy is None else privacy.noise_variance(p))
        return answer

    def _move(self, p: Tensor, group: dict[str, Any], variance: float | Tensor) -> None:
        g, state, (b1, b2) = p.grad, self.state[p], group["betas"]
        assert g is not None
        if not state:
            state["step"], state["noise"] = 0, 0.0
            state["mean"], state["square"] = torch.zeros_like(p), torch.zeros_like(p)
        state["step"] += 1
        mean, square, t = state["mean"].lerp_(g, 1 - b1), state["square"], state["step"]
        square.mul_(b2).addcmul_(g, g, value=1 - b2)
        state["noise"] = b2 * state["noise"] + (1 - b2) * variance
        known = state["noise"] / (1 - b2**t)
        least = group["floor"] * standard_error(b2, t) * known
        second = (square / (1 - b2**t) - known).clamp_(min=torch.as_tensor(least + group["eps"] ** 2).to(square))
        p.mul_(1 - group["lr"] * group["weight_decay"]).addcdiv_(mean, second.sqrt_(), value=-group["lr"] / (1 - b1**t))


def standard_error(beta: float, step: int) -> float:
    """Of the corrected average of squared Gaussians after so many steps, in their variance.

    >>> round(standard_error(0.9, 1), 4), round(standard_error(0.9, 10_000), 4)
    (1.4142, 0.3244)
    """
    kept = beta**step
    return math.sqrt(2 * (1 - beta) * (1 + kept) / ((1 + beta) * (1 - kept)))
