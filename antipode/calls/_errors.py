"""What calls fail with. Each error says which HTTP status a server answers it with."""

from __future__ import annotations

from typing import ClassVar

from antipode import AntipodeError


class CallError(AntipodeError):
    """A call was not executed, or it is not known whether it was.

    Attributes:
        status: the HTTP status for it.
        retry_after: seconds after which the same call is worth another attempt; None where it is
            not.
    """

    code = "call"
    status: ClassVar[int] = 500
    retry_after: float | None = None


class BadName(CallError):
    """What a caller sent as the name of its call is none."""

    code = "call_name"
    status = 400


class Divergent(CallError):
    """The same name was used for another call: with other arguments, or of something else.

    Nothing was executed. Whoever means another call gives it another name.
    """

    code = "call_divergent"
    status = 422


class DuplicateWaits(CallError):
    """The first call of this name is executed still, and the deadline of this one is over."""

    code = "call_waits"
    status = 409
    retry_after = 1.0


class TooManyDuplicates(CallError):
    """As many duplicates of this call wait already as may hold a connection."""

    code = "call_duplicates"
    status = 409
    retry_after = 1.0


class InDoubt(CallError):
    """The call began and its end is not known: it is not executed again.

    Somebody looks whether its effect is there, and says so (see the guide).
    """

    code = "call_in_doubt"
    status = 409


class EqualCalls(CallError):
    """Two equal calls are under way at the same time: which of them is which, nobody can say.

    Give each of them a name: ``with calls.named("first"): ...``.
    """

    code = "call_equal"


class TransactionEnded(CallError):
    """A function of ``once`` ended the transaction that its reply belongs to."""

    code = "call_transaction"


class ReplyTooLarge(CallError):
    """A reply is larger than replies may be: nothing was committed.

    Reply with a reference to what was made.
    """

    code = "call_reply"
