"""What a private run refuses."""

from __future__ import annotations

from discreet.errors import DiscreetError

__all__ = [
    "EARLIER",
    "MEETING",
    "MIXING_LOSS",
    "OUTSIDE",
    "SEVERAL",
    "UNCOLLATED",
    "UNCOMPARED",
    "UNEQUAL",
    "UNJUDGED",
    "UNKNOWN",
    "UNREPEATABLE",
    "MixedRecords",
    "PrivateTrainingError",
]

UNEQUAL = (
    "In a verified batch the gradient of a record was not that of the record alone, so the plan's guarantee does not "
    "hold for this model and loss. Look for what lets records meet: a mean over tokens, weights or statistics of the "
    "batch, comparisons of records, padding that has an effect, rows that change places. The run stops, and the plan "
    "stays charged. On data that may be shown, make_private(..., debug=True) says more; such a run is not private."
)
UNJUDGED = (
    "The loop's own code, from the model's inputs to backward, could not be computed again for one record, so whether "
    "it treats records apart is not known. Call loss.backward() on a loss made by torch functions from what the model "
    "returns, without a loop over records; or say why it should be believed: make_private(..., unverified='reason'), "
    "which the account repeats."
)
UNREPEATABLE = (
    "Run alone twice, the same record had two gradients, so whether the model treats records apart is not known. Look "
    "for a generator, a counter or a running mean that is kept in an object of its own, and for clocks. Draw by torch, "
    "numpy.random or random without a generator of one's own, and keep state in buffers; or say why it should be "
    "believed: make_private(..., unverified='reason'), which the account repeats."
)
UNKNOWN = (
    "A number or a tensor on the way to the loss, an attribute of the model or an option of the optimizer changes with "
    "the batch, and may be made of its records: the loop asks a tensor for values (item, float, numpy, a condition) or "
    "for a size, and what Python does with them cannot be seen. Compute the loss by torch functions, and divide by a "
    "constant; or say why it should be believed: make_private(..., unverified='reason'), which the account repeats."
)
UNCOLLATED = (
    "The collate function was run twice with one record replaced, and more than that record's row changed, or it could "
    "not be run on a few records: whether it keeps records apart is not known. Keep every record in its row; or say "
    "why it should be believed: make_private(..., unverified='reason'), which the account repeats."
)
UNCOMPARED = (
    "Some records were read twice, and were not the same, or could not be collated alone: whether all ranks have the "
    "same records in the same order is not known, and a record in two places is drawn twice. Let what is random draw "
    "from the generators of torch, numpy or random; or say why it should be believed: make_private(..., "
    "unverified='reason'), which the account repeats."
)
SEVERAL = (
    "One record of the batch is in several rows of what model and loss are given: rows were mixed with others (mixup, "
    "statistics of the batch), or put in another order for one input than for another. Keep every record in its row."
)
EARLIER = (
    "Model or loss use a tensor that was computed from the records of an earlier batch, so those records would be in a "
    "step that is not theirs. Compute it from this batch, or from public data."
)
OUTSIDE = (
    "A parameter that is not in the private model (of a head behind it, or of an encoder before it) was changed while "
    "it had a gradient that this run's records made, without noise; and the model's next gradients would go through "
    "what it learned. Put it into the model that you hand to make_private; or freeze it with "
    "requires_grad_(False), or train it on public data alone."
)
MEETING = (
    "Between batch and step, model or loss ask the other ranks for something (all_gather, all_reduce, ...), so a "
    "record may be in the gradients of others, and its gradient alone is not known. Leave it out: sums over the ranks "
    "are made in step; or say why it should be believed: make_private(..., unverified='reason'), which the account "
    "repeats."
)
MIXING_LOSS = (
    "The loss of one record depends on the other records of the batch: a mean over tokens or class weights that "
    "the whole batch divides by, or a comparison of records. Divide by a constant, or by something of the "
    "record's own."
)


class PrivateTrainingError(DiscreetError):
    """A private run was asked for something its guarantee does not cover."""


class MixedRecords(PrivateTrainingError):
    """A model or a loss lets one record's gradient depend on another record."""
