"""S3 with boto3 alone: Table 2, an instrumented client and a transfer."""

import io
import sys

import boto3

import antipode
from antipode_shims import s3

WHERE = {
    "region_name": "us-east-1",
    "endpoint_url": sys.argv[1],
    "aws_access_key_id": "AKIAEXAMPLE",
    "aws_secret_access_key": "secret",
}

client = boto3.client("s3", **WHERE)
with antipode.scope() as scope, s3.shim("posts", client, bucket="posts") as shim:
    shim.write("extras", b"1")
    antipode.barrier(timeout=5)
    assert shim.read("extras")[0] == b"1"
    assert not scope.lineage.incomplete

s3.instrument_client(client, datastore="native")
with antipode.scope() as scope:
    client.upload_fileobj(io.BytesIO(b"1"), "posts", "native")
    antipode.barrier(timeout=5, at="read")
    assert client.get_object(Bucket="posts", Key="native")["Body"].read() == b"1"
    assert scope.lineage
    assert not scope.lineage.incomplete
s3.uninstrument_client(client)
