"""Consumers whose messages wait for what they depend on: pika's and aio-pika's."""
