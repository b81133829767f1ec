"""The models people bring, tiny and with random weights: ``transformers`` families, adapters, vision, text, graphs.

A member is a function that makes a model, a batch of named tensors (records first) and the losses of its records. They
are imported when they are made: ``transformers`` takes seconds, and a session pays for it once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RECORDS = 5
WORDS = 61


@dataclass(frozen=True)
class Member:
    """A model, a batch of it, and what a record's loss is."""

    model: nn.Module
    batch: Mapping[str, Tensor]
    losses: Callable[[nn.Module, Mapping[str, Tensor]], Tensor]


def made(name: str, records: int = RECORDS, **options: Any) -> Member:
    """A member of the zoo, the same one every time."""
    torch.manual_seed(11)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ZOO[name](records, **options)


# --- losses ----------------------------------------------------------------------------------------------------------


def per_token(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """A record's own mean over its tokens; −100 is padding."""
    given = {name: x for name, x in batch.items() if name != "labels"}
    scores, labels = model(**given).logits, batch["labels"]
    scores = scores[:, -labels.shape[1] :]  # prompts come before
    each = F.cross_entropy(scores.transpose(1, 2), labels, ignore_index=-100, reduction="none").sum(1)
    return each / (labels != -100).sum(1).clamp(min=1)


def per_class(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    given = {name: x for name, x in batch.items() if name != "labels"}
    out = model(**given)
    return F.cross_entropy(out if isinstance(out, Tensor) else out.logits, batch["labels"], reduction="none")


def curved(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """Curved, so that every output gradient differs."""
    out = model(*batch.values())
    out = out if isinstance(out, Tensor) else out[0]
    return (out * torch.sin(out + 0.3)).flatten(1).sum(1)


# --- batches ---------------------------------------------------------------------------------------------------------


def text(records: int, length: int = 7, words: int = WORDS) -> dict[str, Tensor]:
    """Texts of different lengths: masks, and labels whose padding is ignored."""
    tokens = torch.randint(0, words, (records, length))
    real = torch.arange(length) < torch.randint(length // 2, length + 1, (records, 1))
    return {
        "input_ids": tokens,
        "attention_mask": real.long(),
        "labels": tokens.roll(-1, 1).masked_fill(~real, -100),
    }


def unmasked(records: int, length: int = 7, words: int = WORDS) -> dict[str, Tensor]:
    found = text(records, length, words)
    del found["attention_mask"]
    return found


def masked_words(records: int, length: int = 7, words: int = WORDS) -> dict[str, Tensor]:
    """One word in seven is to be guessed, at least one a record."""
    found = text(records, length, words)
    hidden = torch.rand(records, length) < 0.15
    hidden[:, 0] = True
    return found | {"labels": found["input_ids"].masked_fill(~hidden, -100)}


def pictures(records: int, size: int = 16, channels: int = 3) -> dict[str, Tensor]:
    return {"pixel_values": torch.randn(records, channels, size, size), "labels": torch.randint(0, 3, (records,))}


def images(records: int, size: int = 12, channels: int = 3) -> dict[str, Tensor]:
    return {"x": torch.randn(records, channels, size, size)}


# --- transformers ----------------------------------------------------------------------------------------------------


def hugging(
    model: str, config: str, batch: Callable[[int], dict[str, Tensor]], losses: Any = per_token, **options: Any
) -> Callable[..., Member]:
    def make(records: int, words: int = WORDS, **more: Any) -> Member:
        import transformers

        given = options | more
        batch_of = batch
        if "vocab_size" in given or losses is per_token:
            given = given | {"vocab_size": words}
        made = getattr(transformers, model)(getattr(transformers, config)(**given))
        found = batch_of(records) if words == WORDS else batch_of(records, words=words)  # type: ignore[call-arg]
        return Member(made, found, losses)

    return make


def sequences(records: int, words: int = WORDS) -> dict[str, Tensor]:
    found = text(records, words=words)
    return found | {"decoder_input_ids": torch.randint(0, words, found["labels"].shape)}


SMALL = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
}
BERT = {name: size for name, size in SMALL.items() if name != "num_key_value_heads"}
QUIET = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
GPT2 = {
    "n_embd": 16,
    "n_layer": 2,
    "n_head": 2,
    "n_positions": 32,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
}
VISION = BERT | QUIET | {"image_size": 16, "patch_size": 4, "num_labels": 3}
VISION.pop("max_position_embeddings")
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "dropout_rate": 0.0}
BART = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 32,
    "dropout": 0.0,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": 1,
}
SWIN = {"image_size": 16, "patch_size": 2, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 2], "window_size": 4}
SWIN |= {"num_labels": 3, "drop_path_rate": 0.0} | QUIET
CONVNEXT = {"hidden_sizes": [8, 12], "depths": [1, 1], "num_stages": 2, "num_labels": 3, "drop_path_rate": 0.0}
RESNET = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic", "num_labels": 3}
MAMBA = {"hidden_size": 16, "state_size": 4, "num_hidden_layers": 2, "use_mambapy": False}
EXPERTS = SMALL | {"num_local_experts": 4, "num_experts_per_tok": 2, "router_jitter_noise": 0.0}


def resnet(records: int) -> Member:
    from discreet.training import replace_batch_norm

    member = hugging("ResNetForImageClassification", "ResNetConfig", pictures, per_class, **RESNET)(records)
    return Member(replace_batch_norm(member.model, groups=4), member.batch, member.losses)


TRANSFORMERS = {
    "gpt2": hugging("GPT2LMHeadModel", "GPT2Config", text, **GPT2),
    "gpt2, eager": hugging("GPT2LMHeadModel", "GPT2Config", text, **GPT2, attn_implementation="eager"),
    "gpt-neox": hugging("GPTNeoXForCausalLM", "GPTNeoXConfig", text, **BERT),
    "opt": hugging(
        "OPTForCausalLM",
        "OPTConfig",
        text,
        hidden_size=16,
        ffn_dim=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=32,
        word_embed_proj_dim=16,
        dropout=0.0,
    ),
    "bloom": hugging(
        "BloomForCausalLM",
        "BloomConfig",
        text,
        hidden_size=16,
        n_layer=2,
        n_head=2,
        hidden_dropout=0.0,
        attention_dropout=0.0,
    ),
    "llama": hugging("LlamaForCausalLM", "LlamaConfig", text, **SMALL),
    "llama, tied": hugging("LlamaForCausalLM", "LlamaConfig", text, **SMALL, tie_word_embeddings=True),
    "mistral": hugging("MistralForCausalLM", "MistralConfig", text, **SMALL, sliding_window=4),
    "qwen3": hugging("Qwen3ForCausalLM", "Qwen3Config", text, **SMALL, head_dim=8),
    "gemma": hugging("GemmaForCausalLM", "GemmaConfig", text, **SMALL, head_dim=8),
    "phi": hugging("PhiForCausalLM", "PhiConfig", text, **SMALL),
    "mixtral": hugging("MixtralForCausalLM", "MixtralConfig", text, **EXPERTS),
    "mixtral, eager": hugging("MixtralForCausalLM", "MixtralConfig", text, **EXPERTS, experts_implementation="eager"),
    "mixtral, bmm": hugging(
        "MixtralForCausalLM", "MixtralConfig", text, **EXPERTS, experts_implementation="batched_mm"
    ),
    "bert, mlm": hugging("BertForMaskedLM", "BertConfig", masked_words, **BERT, **QUIET),
    "roberta": hugging("RobertaForMaskedLM", "RobertaConfig", masked_words, **BERT, **QUIET),
    "distilbert": hugging(
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        masked_words,
        dim=16,
        hidden_dim=24,
        n_layers=2,
        n_heads=2,
        dropout=0.0,
        attention_dropout=0.0,
        max_position_embeddings=32,
    ),
    "electra": hugging("ElectraForMaskedLM", "ElectraConfig", masked_words, **BERT, **QUIET, embedding_size=8),
    "albert": hugging("AlbertForMaskedLM", "AlbertConfig", masked_words, **BERT, **QUIET, embedding_size=8),
    "deberta": hugging(
        "DebertaV2ForMaskedLM",
        "DebertaV2Config",
        masked_words,
        **BERT,
        **QUIET,
        relative_attention=True,
        position_buckets=8,
        pos_att_type=["p2c", "c2p"],
    ),
    "t5": hugging("T5ForConditionalGeneration", "T5Config", sequences, **T5, decoder_start_token_id=0),
    "bart": hugging("BartForConditionalGeneration", "BartConfig", sequences, **BART),
    "mamba": hugging("MambaForCausalLM", "MambaConfig", unmasked, **MAMBA),
    "vit": hugging("ViTForImageClassification", "ViTConfig", pictures, per_class, **VISION),
    "deit": hugging("DeiTForImageClassification", "DeiTConfig", pictures, per_class, **VISION),
    "beit": hugging(
        "BeitForImageClassification",
        "BeitConfig",
        pictures,
        per_class,
        **VISION,
        drop_path_rate=0.0,
        use_relative_position_bias=True,
    ),
    "swin": hugging("SwinForImageClassification", "SwinConfig", pictures, per_class, **SWIN),
    "swin v2": hugging("Swinv2ForImageClassification", "Swinv2Config", pictures, per_class, **SWIN),
    "convnext": hugging("ConvNextForImageClassification", "ConvNextConfig", pictures, per_class, **CONVNEXT),
    "resnet": resnet,
}


# --- adapters --------------------------------------------------------------------------------------------------------


def adapted(base: str, config: str, **options: Any) -> Callable[..., Member]:
    """A frozen family with an adapter of ``peft``; its second matrix is not zero, or half of its gradients would be."""

    def make(records: int, **more: Any) -> Member:
        import peft

        member = TRANSFORMERS[base](records, **more)
        task = {"task_type": peft.TaskType.CAUSAL_LM} if "lm" not in options else {}
        model = peft.get_peft_model(member.model, getattr(peft, config)(**task, **options))
        with torch.no_grad():
            for p in model.parameters():
                if p.requires_grad and not bool(p.any()):
                    p.normal_(0, 0.02)
        return Member(model, member.batch, member.losses)

    return make


def biases_only(records: int) -> Member:
    """BitFit: biases and the head."""
    member = TRANSFORMERS["bert, mlm"](records)
    for name, p in member.model.named_parameters():
        p.requires_grad_(name.endswith("bias"))
    return member


LLAMA = {"target_modules": ["q_proj", "v_proj", "down_proj"]}
ADAPTERS = {
    "lora": adapted("llama", "LoraConfig", r=3, lora_dropout=0.0, **LLAMA),
    "lora on conv1d": adapted("gpt2", "LoraConfig", r=3, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True),
    "dora": adapted("llama", "LoraConfig", r=3, use_dora=True, **LLAMA),
    "ia3": adapted("llama", "IA3Config", feedforward_modules=["down_proj"], **LLAMA),
    "prompt": adapted("llama", "PromptTuningConfig", num_virtual_tokens=3),
    "prefix": adapted("llama", "PrefixTuningConfig", num_virtual_tokens=3),
    "bitfit": biases_only,
}


# --- plain torch -----------------------------------------------------------------------------------------------------


class UNet(nn.Module):
    """Down, up, and a bridge between."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.deep = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.norm, self.up = nn.GroupNorm(2, 8), nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        bridge = F.silu(self.down(x))
        return self.out(torch.cat([bridge, self.up(F.silu(self.norm(self.deep(bridge))))], 1))


class Recurrent(nn.Module):
    """A text classifier on an LSTM or a GRU of two layers, one from each side."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.word = nn.Embedding(WORDS, 6)
        self.over = kind(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(10, 3)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.head(self.over(self.word(input_ids))[0].mean(1))


class Graphs(nn.Module):
    """Messages along the edges of each record's graph, gathered and scattered; a readout over its nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.update, self.head = nn.Linear(8, 6), nn.Linear(10, 4), nn.Linear(4, 3)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        for _ in range(2):
            ends = [edges[:, i].unsqueeze(-1).expand(-1, -1, nodes.shape[-1]) for i in (0, 1)]
            sent = F.relu(self.message(torch.cat([nodes.gather(1, end) for end in ends], -1)))
            where = edges[:, 1].unsqueeze(-1).expand_as(sent)
            heard = torch.zeros(*nodes.shape[:2], sent.shape[-1], dtype=sent.dtype).scatter_add(1, where, sent)
            nodes = torch.tanh(self.update(torch.cat([nodes, heard], -1)))
        return self.head(nodes.mean(1))


class FlatGraphs(Graphs):
    """The same with the nodes of all graphs in one list, as graph libraries have them."""

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        records, count, width = nodes.shape
        ends = (edges + count * torch.arange(records).view(-1, 1, 1)).transpose(0, 1).flatten(1)
        flat = nodes.reshape(-1, width)
        for _ in range(2):
            sent = F.relu(self.message(torch.cat([flat[ends[0]], flat[ends[1]]], -1)))
            heard = torch.zeros(len(flat), sent.shape[-1], dtype=sent.dtype).index_add(0, ends[1], sent)
            flat = torch.tanh(self.update(torch.cat([flat, heard], -1)))
        return self.head(flat.view(records, count, -1).mean(1))


class Experts(nn.Module):
    """Each token goes to the experts it likes best; every expert sees its tokens alone."""

    def __init__(self, count: int = 4) -> None:
        super().__init__()
        self.router, self.head = nn.Linear(6, count), nn.Linear(6, 3)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(6, 7), nn.GELU(), nn.Linear(7, 6)) for _ in range(count))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, x.shape[-1])
        best, chosen = self.router(tokens).softmax(-1).topk(2, dim=-1)
        out = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            token, rank = torch.where(chosen == number)
            if len(token):
                out = out.index_add(0, token, (expert(tokens[token]) * best[token, rank, None]).to(out.dtype))
        return self.head(out.view_as(x).mean(1))


class Sorted(nn.Module):
    """Puts the batch in another order and back."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.a, self.b = nn.Parameter(torch.randn(6)), nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        h, order = self.a(x) * self.scale, x[:, 0].argsort()
        return self.b(h[order])[order.argsort()]


class Latents(nn.Module):
    """Learned queries over a sequence, with a bias of positions in attention, and products written by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.queries, self.bias = nn.Parameter(torch.randn(2, 3, 4)), nn.Parameter(torch.randn(2, 3, 5))
        self.keys, self.values = nn.Parameter(torch.randn(8, 8)), nn.Parameter(torch.randn(2, 8, 4))

    def forward(self, x: Tensor) -> Tensor:
        k = (x @ self.keys).unflatten(-1, (2, 4)).transpose(1, 2)
        v = torch.einsum("btn,hnm->bhtm", x, self.values)
        return F.scaled_dot_product_attention(self.queries.unsqueeze(0), k, v, self.bias).flatten(1)


class Pair(nn.Module):
    """A generator that is trained against a fixed critic."""

    def __init__(self) -> None:
        super().__init__()
        self.make = nn.Sequential(
            nn.Linear(4, 16), nn.ReLU(), nn.Unflatten(1, (4, 2, 2)), nn.ConvTranspose2d(4, 3, 4, 2, 1)
        )
        self.judge = nn.Sequential(nn.Conv2d(3, 4, 3), nn.LeakyReLU(0.2, inplace=True), nn.Flatten(), nn.Linear(16, 1))
        self.judge.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.judge(self.make(x).tanh())


def plain(model: Callable[[], nn.Module], **shapes: Any) -> Callable[..., Member]:
    """A model of plain torch on tensors of these shapes, or on what these functions make."""

    def make(records: int) -> Member:
        batch = {name: of(records) if callable(of) else torch.randn(records, *of) for name, of in shapes.items()}
        return Member(model(), batch, curved)

    return make


def words(records: int) -> Tensor:
    return torch.randint(0, WORDS, (records, 6))


def edges(records: int) -> Tensor:
    return torch.randint(0, 5, (records, 2, 7))


PLAIN = {
    "u-net": plain(UNet, x=(3, 8, 8)),
    "lstm": plain(lambda: Recurrent(nn.LSTM), input_ids=words),
    "gru": plain(lambda: Recurrent(nn.GRU), input_ids=words),
    "graphs": plain(Graphs, nodes=(5, 4), edges=edges),
    "graphs in one list": plain(FlatGraphs, nodes=(5, 4), edges=edges),
    "experts": plain(Experts, x=(5, 6)),
    "sorted": plain(Sorted, x=(4,)),
    "latents": plain(Latents, x=(5, 8)),
    "generator": plain(Pair, x=(4,)),
    "critic": plain(
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(16, 1)), x=(3, 4, 4)
    ),
}

ZOO: dict[str, Callable[..., Member]] = {**TRANSFORMERS, **ADAPTERS, **PLAIN}
