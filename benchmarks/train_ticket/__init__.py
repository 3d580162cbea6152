"""TrainTicket: a user cancels an order and looks at once for the refund, which a queue makes.

The paper's third application, with services in Java and Python on real stores. See
`docs/guides/java/several-services.md`.
"""
