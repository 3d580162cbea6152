"""Two brokers of ActiveMQ Classic in a network."""
