"""DynamoDB with boto3 alone: Table 2, a client and a resource."""

import sys

import boto3

import antipode
from antipode_shims import dynamodb

WHERE = {
    "region_name": "us-east-1",
    "endpoint_url": sys.argv[1],
    "aws_access_key_id": "AKIAEXAMPLE",
    "aws_secret_access_key": "secret",
}

client = boto3.client("dynamodb", **WHERE)
with antipode.scope() as scope, dynamodb.shim("posts", client, table="posts") as shim:
    shim.write("extras", b"1")
    antipode.barrier(timeout=5)
    assert shim.read("extras")[0] == b"1"
    assert not scope.lineage.incomplete

resource = dynamodb.instrument_client(boto3.resource("dynamodb", **WHERE), datastore="native")
table = resource.Table("posts")
with antipode.scope() as scope:
    table.put_item(Item={"id": "native", "n": 1})
    antipode.barrier(timeout=5, at="read")
    assert table.get_item(Key={"id": "native"})["Item"] == {"id": "native", "n": 1}
    assert scope.lineage
    assert not scope.lineage.incomplete
dynamodb.uninstrument_client(resource)
