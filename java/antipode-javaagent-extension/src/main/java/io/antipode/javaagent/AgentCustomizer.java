package io.antipode.javaagent;

import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizer;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider;

/**
 * Wraps each propagator of the agent that carries baggage, and informs the library that it does.
 */
public final class AgentCustomizer implements AutoConfigurationCustomizerProvider {
  /** Makes it. The agent does, by its service file. */
  public AgentCustomizer() {}

  @Override
  public void customize(AutoConfigurationCustomizer customizer) {
    customizer.addPropagatorCustomizer(
        (propagator, config) -> {
          if (!propagator.fields().contains("baggage")) {
            return propagator;
          }
          System.setProperty(RenderingPropagator.ASKS, "true");
          return new RenderingPropagator(propagator);
        });
  }

  /** After all others: what they make of a propagator is wrapped. */
  @Override
  public int order() {
    return Integer.MAX_VALUE;
  }
}
