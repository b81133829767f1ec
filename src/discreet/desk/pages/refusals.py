"""How a page says no: what happened, that nothing was spent, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.desk.errors import NOT_THERE, Refusal
from discreet.desk.pages.views import page
from discreet.desk.pages.visits import Visit

if TYPE_CHECKING:
    from starlette.responses import Response

__all__ = ["refused", "unknown_page"]

NOTHING = "Nothing was charged."


class Advice(NamedTuple):
    """What a page says of a kind of refusal."""

    title: str
    spent: str
    remedy: str


_ADVICE = {
    "budget": Advice("This does not fit the budget", NOTHING,
                     "Ask with a smaller ε, or ask the owner of the data to raise your limit, with a reason."),
    "too_large": Advice("This is more than one question may cost", NOTHING, "Ask with a smaller ε."),
    "invalid": Advice("The question cannot be asked like this", NOTHING, "Go back, and mend what is named above."),
    "not_found": Advice("There is nothing here", NOTHING,
                        "Check the address. If somebody sent it to you, it may be for another role than yours."),
    "no_budget": Advice("You have no budget here", NOTHING, "Ask the owner of the data for a part of it."),
    "frozen": Advice("The desk is frozen", NOTHING,
                     "Ask again when the owner has thawed it. What you see in your history stays there, for free."),
    "key_taken": Advice("This form was used for another question", NOTHING, "Ask again from the page of the data set."),
    "busy": Advice("This question is being answered", "It is charged once, whatever you do.",
                   "Look into your history in a moment."),
    "declined": Advice("The owner declined this", NOTHING, "Ask for less, or talk to the owner."),
    "expired": Advice("The approval has expired", NOTHING, "Ask again: the owner is asked again."),
    "cancelled": Advice("You took this back", NOTHING, "Ask it again if you want it after all."),
    "refused": Advice("The books refuse this", NOTHING, "Change what is named above."),
    "too_late": Advice("This no longer waits", "What was charged stays charged.", "Your history shows its answer."),
    "too_many": Advice("That was quick", NOTHING, "Wait a little, then ask again."),
    "too_many_waiting": Advice("Many of your questions wait", NOTHING, "Let the owner decide some of them first."),
    "queue_full": Advice("Many of your questions are queued", NOTHING, "Let some be answered first."),
    "not_approved": Advice("This is not what was approved", NOTHING, "Ask it again: the owner is asked again."),
    "cross_site": Advice("This came from elsewhere", NOTHING, "Open the page at the desk, and send it from there."),
    "unavailable": Advice("The desk cannot do this now",
                          "If it had been charged already, the charge stands, and your history says so.",
                          "Try again in a moment; if it stays like this, tell the owner."),
}  # fmt: skip

_UNFORESEEN = Advice(
    "The desk says no", "Your history says whether anything was charged.", "Ask the owner of the data."
)


def refused(visit: Visit, refusal: Refusal, **values: Any) -> Response:
    """A refusal as a page; an address that is not there looks like one that one may not see."""
    advice = _ADVICE.get(refusal.code, _UNFORESEEN)
    return visit.show("refused.html.j2", refusal.status, refusal=refusal, advice=advice, **values)


def unknown_page() -> Response:
    """What is said where there is nothing, to who is not signed in."""
    return page("broken.html.j2", 404, refusal=Refusal(404, "not_found", NOT_THERE))
