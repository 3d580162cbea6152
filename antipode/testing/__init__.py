"""What a service needs to test itself with Antipode."""
