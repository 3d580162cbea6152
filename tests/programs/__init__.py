"""Random programs over real servers, by client: ``make programs``."""
