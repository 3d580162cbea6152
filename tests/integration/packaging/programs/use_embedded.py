"""The embedded store, with nothing besides."""

import sys

import antipode
from antipode_shims import embedded

with antipode.scope() as scope, embedded.shim("posts", sys.argv[1]) as shim:
    shim.write("extras", b"1")
    antipode.barrier(timeout=5)
    assert shim.read("extras")[0] == b"1"
    assert len(scope.lineage) == 1
