"""RabbitMQ: two federated brokers."""
