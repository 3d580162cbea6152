package io.antipode.spring;

import io.antipode.ConfigurationException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Says why an application does not start whose settings of this library are wrong. */
final class ConfigurationFailureAnalyzer extends AbstractFailureAnalyzer<ConfigurationException> {
  @Override
  protected FailureAnalysis analyze(Throwable failure, ConfigurationException cause) {
    return new FailureAnalysis(
        "Antipode cannot be set up as configured: " + cause.getMessage(),
        "Change what that names: a property antipode.*, a variable ANTIPODE_* or a bean.",
        cause);
  }
}
