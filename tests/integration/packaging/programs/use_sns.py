"""SNS and SQS with boto3 alone: instrumented clients and Table 2."""

import sys

import boto3

import antipode
from antipode_shims import sns

TOPICS, QUEUES, TOPIC, QUEUE = sys.argv[1:]
ACCOUNT = {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "secret"}
CAUSE = antipode.WriteId("posts", "log", 1)

publisher = boto3.client("sns", region_name="us-east-1", endpoint_url=TOPICS, **ACCOUNT)
consumer = boto3.client("sqs", region_name="eu-west-1", endpoint_url=QUEUES, **ACCOUNT)
for client in (publisher, consumer):
    sns.instrument_client(client, datastore="news")
with antipode.scope(antipode.Lineage([CAUSE])):
    publisher.publish(TopicArn=TOPIC, Message="hello")
(message,) = consumer.receive_message(QueueUrl=QUEUE, WaitTimeSeconds=10)["Messages"]
with sns.message(message, datastore="news") as scope:
    assert [write.datastore for write in scope.lineage] == ["posts"]
consumer.delete_message(QueueUrl=QUEUE, ReceiptHandle=message["ReceiptHandle"])
for client in (publisher, consumer):
    sns.uninstrument_client(client)
with (
    sns.shim("news", publisher, topic=TOPIC) as writer,
    sns.shim("news", consumer, queue=QUEUE) as reader,
):
    writer.write("subject", "hello", antipode.Lineage([CAUSE]))
    with antipode.scope() as scope:
        assert reader.read(wait_s=10).value == "hello"
        assert scope.lineage
