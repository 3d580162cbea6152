"""The TrainTicket benchmark: violations, costs and Figure 9 of the paper, as a page of results."""
