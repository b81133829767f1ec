"""A rehearsal on made-up records, before anything is charged: what is wrong with every record is found for nothing.

Class weights of another length, a loss of the wrong shape, a model that does not fit the columns: each stops a run at
its first batch, when the book has been charged. So model and loss run once on records that nobody brought.

What they look like must be public. A ``placeholder`` says it; the columns of a ``TensorDataset`` have one shape for all
records; the ``features`` of a table of Hugging Face's name and type its columns. Where torch's own collate function
stacks records they are alike in form, which handing them over declares: the form of the first one is read, where a
rehearsal was asked for. With a collate function of the user's own the first record's length may tell of a person.

Decision 416.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from discreet.errors import DiscreetError, extra
from discreet.training.sampling.collate import form_of

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.utils.data import TensorDataset, default_collate

__all__ = ["made_up_batch", "run_plainly"]

_SIZE = r"\(torch\.Size\(\[([0-9, ]*)\]\)\)"
_SHAPES = rf"(?:Using a t|T)arget size {_SIZE}"  # what torch's losses say of shapes that differ
ROWS = 2
LENGTH = 4  # of a made-up sequence: models take any that is short


def made_up_batch(loader: Any, placeholder: Any = None, rows: int = ROWS, *, may_read: bool = True) -> Any:
    """A batch of made-up records, collated as the loader does; none where their form is not public.

    ``may_read``: whether the form of the first record may be read, where torch's own function collates.

    >>> from torch.utils.data import DataLoader
    >>> x, y = made_up_batch(DataLoader(TensorDataset(torch.ones(9, 3), torch.ones(9).long())))
    >>> x.shape, y
    (torch.Size([2, 3]), tensor([0, 0]))
    """
    if placeholder is None and not len(loader.dataset):
        return None
    with torch.random.fork_rng(devices=[]):
        records = _records(loader, placeholder, rows, may_read)
    if records is None:
        return None
    try:
        return loader.collate_fn(records)
    except Exception as error:
        raise ValueError(_reason("The collate function does not take made-up records", error)) from None


def _records(loader: Any, placeholder: Any, rows: int, may_read: bool) -> list[Any] | None:
    data = loader.dataset
    if placeholder is not None:
        return [placeholder] * rows
    if isinstance(data, TensorDataset):
        return [tuple(_numbers(column.new_empty(column.shape[1:])) for column in data.tensors) for _ in range(rows)]
    if isinstance(getattr(data, "features", None), Mapping):
        return _of_features(data.features, rows)
    if loader.collate_fn is not default_collate or not may_read:
        return None
    try:
        record = data[0]
    except Exception:
        raise ValueError("The first record cannot be read: data[0] fails. The reason is withheld.") from None
    return [form_of(record, _numbers, lambda kind: kind()) for _ in range(rows)]


def _of_features(features: Mapping[str, Any], rows: int) -> list[dict[str, Any]] | None:
    """Records of columns that are whole numbers, floats, or lists of such; none where there are others."""
    record: dict[str, Any] = {}
    for name, feature in features.items():
        inner = getattr(feature, "feature", None)
        kind = str(getattr(feature if inner is None else inner, "dtype", ""))
        if kind == "string" and inner is None:
            continue  # which a Trainer takes out
        if not kind.startswith(("int", "uint", "float", "bool")) or getattr(inner, "feature", None) is not None:
            return None
        zero = 0.0 if kind.startswith("float") else 0
        record[name] = zero if inner is None else [zero] * LENGTH
    return [dict(record) for _ in range(rows)] or None


def _numbers(like: Tensor) -> Tensor:
    """Whole numbers are zero, which is a class and a word of every model; others are between zero and one."""
    return torch.rand(like.shape).to(like) if like.is_floating_point() else torch.zeros_like(like)


def run_plainly(model: nn.Module, backward: Callable[[], None]) -> None:
    """Run a forward and a backward pass, and leave no trace: not in buffers, gradients or generators."""
    before = {name: value.clone() for name, value in model.state_dict().items() if isinstance(value, Tensor)}
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.filterwarnings("error", _SHAPES)  # a loss that only warns of shapes compares records with others
            backward()
    except DiscreetError:
        raise
    except Exception as error:
        whole = _reason("Model and loss do not run on two made-up records", error)
        raise ValueError(_shapes_that_differ(str(error)) or whole) from None
    finally:
        model.load_state_dict(before, strict=False)
        model.zero_grad(set_to_none=True)


def _shapes_that_differ(reason: str) -> str:
    """What to write where labels and what the model gives differ in shape, by torch's words; nothing elsewhere."""
    shapes = re.match(f"{_SHAPES}.*input size {_SIZE}", reason)
    if shapes is None:
        return ""
    label, output = ([int(size) for size in part.split(",") if size.strip()] for part in shapes.groups())
    match len(output) - len(label):
        case 1 if output == [*label, 1]:
            how = "labels need one dimension more, as y.unsqueeze(-1), or the model one less, as model(x).squeeze(-1)"
        case -1 if label == [*output, 1]:
            how = "labels need one dimension less, as y.squeeze(-1), or the model one more, as model(x).unsqueeze(-1)"
        case _:
            how = "give labels the shape of what the model gives"
    return (
        f"Of two made-up records the model gives a tensor of shape {output}, but the labels have {label}, so that the "
        f"loss compares records with one another: {how}. Nothing was charged."
    )


def _reason(what: str, error: Exception) -> str:
    reason = (" ".join(str(error).split()) or type(error).__name__).rstrip(".")
    return (
        f"{what} in the form of the data: {reason}. Nothing was charged. If records look otherwise, give placeholder=."
    )
