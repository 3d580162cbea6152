"""What every room needs from the process: settings, clock, counts, observers."""
