package io.antipode.spring;

import io.antipode.ConfigurationException;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.ListableBeanFactory;

/** What properties say of beans, by the names of these. */
final class NamedBeans<T> {
  private final String prefix;
  private final Map<String, T> properties;

  /**
   * Knows what properties say.
   *
   * @param prefix of the properties, before a bean's name
   */
  NamedBeans(String prefix, Map<String, T> properties) {
    this.prefix = prefix;
    this.properties = properties;
  }

  /**
   * Returns what is said of a bean; null for nothing. Names are compared as in the environment,
   * where there are neither capitals nor dashes.
   */
  @Nullable T find(String bean) {
    String wanted = plain(bean);
    return properties.entrySet().stream()
        .filter(each -> plain(each.getKey()).equals(wanted))
        .map(Map.Entry::getValue)
        .findFirst()
        .orElse(null);
  }

  /**
   * Checks that each name is that of a bean.
   *
   * @param type of the beans that may be named
   * @throws ConfigurationException if one is not
   */
  void requireBeans(ListableBeanFactory beans, Class<?> type) {
    TreeSet<String> there =
        new TreeSet<>(
            Arrays.asList(BeanFactoryUtils.beanNamesForTypeIncludingAncestors(beans, type)));
    for (String named : properties.keySet()) {
      if (there.stream().noneMatch(bean -> plain(bean).equals(plain(named)))) {
        String which =
            there.isEmpty() ? "; there is none" : "; there are " + String.join(", ", there);
        throw refused(named, " names no bean of the type " + type.getSimpleName() + which);
      }
    }
  }

  private static String plain(String name) {
    return name.replaceAll("[-_.]", "").toLowerCase(Locale.ROOT);
  }

  /**
   * Returns what properties name as the datastore of a bean.
   *
   * @throws ConfigurationException if they name none
   */
  String requireDatastore(String bean, @Nullable String datastore) {
    if (datastore == null || datastore.isBlank()) {
      throw refused(bean, ".datastore names the datastore, as every service does");
    }
    return datastore;
  }

  /** Returns what says that the properties of a bean cannot be kept. */
  ConfigurationException refused(String bean, String why) {
    return new ConfigurationException(prefix + "." + bean + why);
  }
}
