"""The Celery application of the EU, over the RabbitMQ there."""

from __future__ import annotations

import os

from celery import Celery

from examples.posts import telemetry

telemetry.set_up()  # before the worker forks its processes

app = Celery("posts", broker=os.environ["RABBITMQ_URL"])
app.conf.update(
    broker_connection_retry_on_startup=True,
    task_acks_late=True,
    task_default_queue="tasks",
)
