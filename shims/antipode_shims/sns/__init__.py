"""SNS and SQS: lineages in an attribute of each message.

Needs boto3 (``pip install "antipode-xcy[sns]"``) or aiobotocore (``antipode-xcy[aiobotocore]``).
See docs/guides/sns.md.
"""

from __future__ import annotations

from ._clients.message import lambda_handler, message
from ._clients.process_wide import instrument, uninstrument
from ._commands import COVERED_READS, COVERED_WRITES
from ._instrument import instrument_client, uninstrument_client
from ._shim import Delivery, SNSShim, shim

__all__ = [
    "COVERED_READS",
    "COVERED_WRITES",
    "Delivery",
    "SNSShim",
    "instrument",
    "instrument_client",
    "lambda_handler",
    "message",
    "shim",
    "uninstrument",
    "uninstrument_client",
]


def __dir__() -> list[str]:
    return __all__
