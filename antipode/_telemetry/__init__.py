"""Spans and metrics by OpenTelemetry's API. Nothing imports it but the start."""
