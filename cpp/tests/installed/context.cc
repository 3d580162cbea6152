// Compiled with -fno-exceptions, and with the standard library's types
// in place of OpenTelemetry's own.
#define OPENTELEMETRY_STL_VERSION 2017
#include "antipode/opentelemetry.h"

std::string Sent(const antipode::opentelemetry::Context& context) {
  antipode::opentelemetry::Instrument();
  antipode::Headers headers;
  antipode::opentelemetry::HeadersCarrier carrier(headers);
  antipode::opentelemetry::GlobalTextMapPropagator::
      GetGlobalPropagator()
          ->Inject(carrier, context);
  return std::string(carrier.Get("baggage"));
}
