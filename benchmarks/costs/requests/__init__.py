"""What an empty request costs with Antipode, over OpenTelemetry's instrumentation alone."""
