"""Products are the same by either library, part by part, and only large ones of single precision leave MKL."""

import pytest
import torch
import torch.nn.functional as F

from discreet.training.gradients.rules import outer_products
from discreet.training.gradients.rules.outer_products import rows_product, tall_product
from discreet.training.gradients.rules.recurrence import input_linear


@pytest.fixture(params=["as here", "stands in"])
def asked(request, monkeypatch):
    """The shapes that oneDNN was asked for; where the processor is another, torch's linear layer stands in for it."""
    product, shapes = outer_products._onednn(), []
    if product is None or request.param == "stands in":
        product = F.linear

    def ask(x, w, b=None):
        shapes.append((tuple(x.shape), tuple(w.shape)))
        return product(x, w, b)

    monkeypatch.setattr(outer_products, "_onednn", lambda: ask)
    return shapes


@pytest.mark.parametrize(("m", "n"), [(40, 300), (300, 40), (128, 128)])
@pytest.mark.parametrize("records", [513, 1700])
def test_a_tall_product_is_that_of_double_precision(asked, monkeypatch, records, m, n):
    monkeypatch.setattr(outer_products, "COPIED", 1)  # so that a part has the fewest rows
    u, v = torch.randn(m, records).T, torch.randn(records, 2 * n)[:, ::2]
    out = tall_product(u, v, torch.full((m, n), torch.nan))
    torch.testing.assert_close(out, (u.double().T @ v.double()).float(), rtol=1e-5, atol=1e-3)
    assert [x[1] for x, _ in asked] == [512] * (records // 512) + [records % 512]
    assert all(x[0] == min(m, n) for x, _ in asked)


def test_small_products_and_doubles_stay_where_they_were(asked):
    for u, v in (
        (torch.randn(32, 10), torch.randn(32, 10)),
        (torch.randn(600, 90).double(), torch.randn(600, 90).double()),
    ):
        out = tall_product(u, v, u.new_empty(u.shape[1], v.shape[1]))
        torch.testing.assert_close(out, u.T @ v)
    assert not asked


def test_a_part_that_is_not_finite_is_not_hidden(asked):
    u, v = torch.randn(1200, 64), torch.randn(1200, 64)
    u[1100, 3] = torch.inf
    out = tall_product(u, v, torch.empty(64, 64))
    assert asked
    assert not out[3].isfinite().any()
    assert out[[i for i in range(64) if i != 3]].isfinite().all()


@pytest.mark.parametrize("biased", [True, False])
def test_rows_are_multiplied_as_a_linear_layer_does(asked, biased):
    x, weight, bias = torch.randn(700, 64), torch.randn(96, 64), torch.randn(96) if biased else None
    exact = F.linear(x.double(), weight.double(), None if bias is None else bias.double()).float()
    torch.testing.assert_close(rows_product(x, weight, bias), exact, rtol=1e-5, atol=1e-4)
    assert asked


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("library", [None, outer_products._onednn()])
def test_rows_are_as_precise_under_autocast(monkeypatch, library, biased):
    monkeypatch.setattr(outer_products, "_onednn", lambda: library)
    x, weight, bias = torch.randn(700, 64), torch.randn(96, 64), torch.randn(96) if biased else None
    exact = F.linear(x.double(), weight.double(), None if bias is None else bias.double()).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(rows_product(x, weight, bias), exact, rtol=1e-5, atol=1e-4)
        assert F.linear(x, weight).dtype == torch.bfloat16
        assert input_linear(x, weight, bias).dtype == torch.bfloat16  # what the layers after it were given before


def test_the_input_of_a_recurrence_gets_the_gradient_of_a_linear_layer(asked):
    x, weight, bias = torch.randn(20, 40, 64), torch.randn(96, 64), torch.randn(96)
    gradients = []
    for linear in (input_linear, F.linear):
        given = x.clone().requires_grad_()
        output = linear(given, weight, bias)
        output.backward(torch.cos(torch.arange(output.numel(), dtype=torch.float32)).view_as(output))
        gradients.append(given.grad)
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-4)
    assert len(asked) == 2  # forward and back


def test_weights_that_need_a_gradient_get_it_from_autograd(asked):
    x, weight = torch.randn(20, 40, 64), torch.randn(96, 64, requires_grad=True)
    input_linear(x, weight).sum().backward()
    torch.testing.assert_close(weight.grad, x.sum((0, 1)).expand(96, 64), rtol=1e-4, atol=1e-3)
    assert not asked
