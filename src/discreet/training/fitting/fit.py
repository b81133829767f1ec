"""Private training for people without a loop: an operation that trains a model from a factory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from discreet.errors import DiscreetError, extra, positive, whole
from discreet.events import Event
from discreet.habits import BUDGETS, answer_arguments
from discreet.mechanisms.records import check_readable, element_type, has_named_columns
from discreet.random import RngLike, Streams
from discreet.release import Chargeable, Release, charged
from discreet.training.distributed import Ranks
from discreet.training.errors import PrivateTrainingError
from discreet.training.fitting.losses import Criterion, cross_entropy, loss_of
from discreet.training.fitting.progress import Progress
from discreet.training.gradients import Reduction
from discreet.training.loader import PrivateLoader
from discreet.training.noise.observer import Observer
from discreet.training.planning import plan_for
from discreet.training.privacy import Privacy
from discreet.training.private import count_canaries, prepare, rehearse_step, start, what_is_verified_in_part
from discreet.training.run import Run, label_of_charge
from discreet.training.sampling.rehearsal import made_up_batch
from discreet.training.speed import Speed, check_speed

with extra("torch"):
    import torch
    from torch import Tensor, nn
    from torch.utils.data import DataLoader, Dataset, TensorDataset

__all__ = ["Progress", "Training", "fit"]

Model = TypeVar("Model", bound="nn.Module")
Data = Dataset[Any] | tuple[Any, ...]


class Training(Generic[Model]):
    """A private run as an operation: what it costs is known from public facts, and ``release`` trains a new model.

    ``model`` makes the model, from public randomness alone. ``dataset_size`` is the public size that the run is priced
    for; ``options`` are those of ``make_private`` that make its plan. Without ``loss_fn`` the loss is cross entropy. A
    target that the loss cannot take (a class that the model does not have) leaves its record without a gradient.

    >>> run = Training(lambda: torch.nn.Linear(3, 2), dataset_size=200, batch_size=50, epsilon=2.0, delta=1e-4,
    ...                epochs=2)
    >>> from discreet import epsilon
    >>> round(epsilon(run.event, delta=1e-4), 2), run.unit
    (2.0, 'one record')
    >>> x = torch.randn(200, 3)
    >>> type(run.release((x, (x[:, 0] > 0).long())).value).__name__
    'Linear'
    """

    def __init__(
        self,
        model: Callable[[], Model],
        *,
        dataset_size: int,
        loss_fn: Criterion | None = None,
        optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
        lr: float = 0.1,
        batch_size: int = 256,
        loss_reduction: Reduction = "mean",
        progress: bool | Literal["local"] | Callable[[float, str], object] = False,
        placeholder: Any = None,
        speed: Speed | None = None,
        unverified: str = "",
        debug: bool = False,
        audit: Observer | None = None,
        **options: Any,
    ) -> None:
        if not (isinstance(progress, bool) or progress == "local" or callable(progress)):
            raise ValueError(f"progress is {progress!r}, but must be True, False, 'local' or a function.")
        self._model, self._optimizer, self._lr = model, optimizer, positive("lr", lr)
        self._criterion = cross_entropy if loss_fn in (None, nn.functional.cross_entropy) else loss_fn
        self._reduction, self._progress, self._placeholder, self._speed = loss_reduction, progress, placeholder, speed
        self._unverified, self._debug = unverified, debug
        self._batch_size, self._delta = whole("batch_size", batch_size, low=1), options.get("delta")
        self.asked = options.get("epsilon"), self._delta
        self._audit, canaries = audit, count_canaries(audit)
        self.plan = plan_for(dataset_size, batch_size, dataset_size=dataset_size, canaries=canaries, **options)
        self.label = self.label_of_charge("private training")

    def label_of_charge(self, label: str) -> str:
        """The label of a charge, with what the account must repeat."""
        return label_of_charge(
            label, self._unverified, self._debug, what_is_verified_in_part(self.plan, check_speed(self._speed))
        )

    @property
    def event(self) -> Event:
        """The price of the whole plan."""
        return self.plan.event

    @property
    def unit(self) -> str:
        """Whom it protects."""
        return self.plan.unit

    @property
    def reproducible(self) -> bool:
        """Whether it is not private without a seed, too: its refusals show private records."""
        return self._debug

    def prepare(self, data: Any = None, rng: RngLike = None) -> Callable[[], Release[Model]]:
        """Refuse what types and shapes can tell, and return what trains.

        Model and loss run once on made-up records in the form of the data, which is public: see ``rehearsal``.
        """
        if Ranks.current().count > 1:
            raise ValueError(
                "fit trains in one process, but there are several: each would charge and release a model of its own. "
                "Write the loop, with make_private on all of them."
            )
        records, streams = _records(data), Streams(rng)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(streams.public(0).word())
            model = self._model()
        made = self._optimizer((p for p in model.parameters() if p.requires_grad), lr=self._lr)
        loader: Any = DataLoader(records, batch_size=self._batch_size)
        run, batches = prepare(
            model,
            made,
            loader,
            self.plan,
            self._reduction,
            streams,
            speed=self._speed,
            placeholder=self._placeholder,
            unverified=self._unverified,
            debug=self._debug,
            audit=self._audit,
        )
        self._rehearse(model, loader)

        def trained() -> Release[Model]:
            start(run)
            model.train()
            quietly(lambda: self._train(run, batches))
            return Release(model, self.event, reproducible=run.reproducible, unit=self.unit)

        return trained

    def release(self, data: Any = None, rng: RngLike = None) -> Release[Model]:
        """Train a new model."""
        return self.prepare(data, rng)()

    def _train(self, run: Run, batches: PrivateLoader) -> None:
        privacy = Privacy(run)
        tell = self._progress if callable(self._progress) else None
        line = Progress(privacy, self._delta, tell=tell) if self._progress else None
        privacy.local = self._progress == "local"
        while privacy.remaining_steps:
            for *inputs, target in batches:
                run.optimizer.zero_grad()
                loss = loss_of(self._criterion, run.model(*inputs), target)
                (loss.sum() if loss.dim() else loss).backward()
                run.optimizer.step()
                if line is not None:
                    line.update(loss.detach())
                if not privacy.remaining_steps:
                    break

    def _rehearse(self, model: Model, loader: DataLoader[Any]) -> None:
        """Run model and loss on made-up records, before anything is charged."""

        def loss(of: Model, batch: Any) -> Tensor:
            *inputs, target = batch
            return self._criterion(of(*inputs), target)

        rows = self.plan.sampler.static_size or 2
        batch = made_up_batch(loader, self._placeholder, rows)
        rehearse_step(model, loader, self.plan, self._reduction, batch, loss, unverified=self._unverified)


@answer_arguments(BUDGETS | {"criterion": "write loss_fn=", "learning_rate": "write lr=", "loss": "write loss_fn="})
def fit(
    model: Model,
    data: Data,
    *,
    book: Chargeable | None = None,
    label: str = "private training",
    rng: RngLike = None,
    dataset_size: int | None = None,
    **options: Any,
) -> Release[Model]:
    """Train a model privately and release it, the same object; ``options`` are those of ``Training`` and
    ``make_private``.

    ``data`` is a dataset of (inputs, target), or a tuple of tensors or arrays. Handing it over declares its length
    public; ``dataset_size`` overrides. ``progress`` shows steps, epsilon and rate, or is a function that is told the
    share that is done and such a line; ``"local"`` also shows the loss and the share of clipped gradients, which are
    not private.

    >>> torch.manual_seed(0); x = torch.randn(200, 3)  # doctest: +ELLIPSIS
    <...>
    >>> trained = fit(torch.nn.Linear(3, 2), (x, (x[:, 0] > 0).long()), epsilon=2.0, delta=1e-4, epochs=2,
    ...               batch_size=50)
    >>> from discreet import epsilon
    >>> round(epsilon(trained.event, delta=1e-4), 2)
    2.0
    """
    records = _records(data)
    size = dataset_size if dataset_size is not None else getattr(options.get("sampler"), "dataset_size", None)
    size = len(records) if size is None else size  # type: ignore[arg-type]
    run = Training(lambda: model, dataset_size=size, **options)
    return charged(run, records, book=book, label=run.label_of_charge(label), rng=rng)


def quietly(training: Callable[[], None]) -> None:
    """Run; what torch says of a batch that it could not take would tell of records, or how many there were."""
    try:
        training()
        return
    except DiscreetError:
        raise
    except Exception as error:
        kind = type(error).__name__
    raise PrivateTrainingError(
        f"Training stopped ({kind}). The message is withheld, because it may tell of records. Common "
        "causes: an input that the model cannot take, records of different shapes."
    )


def _records(data: Any) -> Dataset[Any]:
    if not isinstance(data, tuple):
        if not _lists_records(data):
            raise ValueError(
                f"data is a {type(data).__name__}, but must be a dataset of (inputs, target), with a length, "
                "or a tuple of tensors or arrays."
            )
        return data  # type: ignore[no-any-return]
    columns = [_tensor(column) for column in data]
    if not columns or any(column.dim() == 0 for column in columns):
        raise ValueError("data has a column without dimensions, or none, but each must have one entry per record.")
    if len({len(column) for column in columns}) != 1:
        raise ValueError("data has columns of different lengths, but each must have one entry per record.")
    return TensorDataset(*columns)


def _lists_records(data: Any) -> bool:
    """Whether it is, by its type, a dataset, or a list that may hold records: an array, a frame, a text hold none."""
    wrong = (str, bytes, bytearray, range, memoryview, type, Mapping, Set)
    if not hasattr(type(data), "__len__") or not hasattr(type(data), "__getitem__") or isinstance(data, wrong):
        return False
    return isinstance(data, Dataset) or (element_type(data) is None and not has_named_columns(data))


def _tensor(column: Any) -> Tensor:
    """An array becomes a tensor, its floats those that new models are made of; a list, or a frame, is refused."""
    if isinstance(column, Tensor):
        check_readable(column, "data")
        return column
    if not isinstance(column, np.ndarray) or column.dtype.kind not in "biuf":
        kind = f"an array of {column.dtype}" if isinstance(column, np.ndarray) else f"a {type(column).__name__}"
        raise ValueError(
            f"data has {kind}, in which one record could decide the type of all others, but must have tensors or "
            "arrays of numbers: write torch.tensor(column, dtype=torch.float32), and torch.long for classes."
        )
    made = torch.tensor(column)
    return made.to(torch.get_default_dtype()) if made.is_floating_point() else made
