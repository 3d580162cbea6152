"""requests alone."""

import requests
from answering import answering, request

import antipode
from antipode.integrations import requests as lineages

antipode.instrument()
lineages.instrument()
with answering() as url, request():
    assert requests.get(url, timeout=5).ok
