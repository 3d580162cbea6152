package io.antipode.autoconfigure;

import io.antipode.propagation.AntipodePropagator;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizer;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider;

/** Wraps each propagator that carries baggage. The SDK finds it by its service file. */
public final class PropagatorCustomizer implements AutoConfigurationCustomizerProvider {
  @Override
  public void customize(AutoConfigurationCustomizer customizer) {
    customizer.addPropagatorCustomizer(
        (propagator, config) ->
            AntipodePropagator.carriesBaggage(propagator)
                ? AntipodePropagator.wrap(propagator)
                : propagator);
  }

  /** After all others: what they make of a propagator is wrapped. */
  @Override
  public int order() {
    return Integer.MAX_VALUE;
  }
}
