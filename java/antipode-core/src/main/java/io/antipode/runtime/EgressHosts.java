package io.antipode.runtime;

import java.net.IDN;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Collection;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Which hosts an entry of {@code egress_hosts} names, however a name or address is spelled. */
public final class EgressHosts {
  /** What stands for a port that is not known, or not stated. */
  public static final int ANY_PORT = -1;

  private static final String BELOW = "*.";
  private static final int MAX_PORT = 65_535;

  /** Of URLs, patterns and lists: none of it is part of a host's name. */
  private static final Pattern FOREIGN = Pattern.compile("[\\s/\\\\?#@*,]");

  private static final Pattern DIGITS = Pattern.compile("[0-9]{1,5}");
  private static final Pattern IPV6 = Pattern.compile("[0-9A-Fa-f:.]+");

  /** A host, its port, and whether a text holds nothing else. */
  private record Parts(String host, int port, boolean whole) {}

  private EgressHosts() {}

  /** Returns whether an entry names no host, so that it would never match one. */
  public static boolean isRefused(String entry) {
    Parts parts = split(withoutStar(entry));
    boolean knownPort = parts.port == ANY_PORT || (parts.port > 0 && parts.port <= MAX_PORT);
    boolean named = parts.host.chars().anyMatch(c -> c != '.');
    return !(parts.whole && knownPort && named) || FOREIGN.matcher(parts.host).find();
  }

  /** Returns whether an entry, which is not refused, is of one port alone. */
  public static boolean hasPort(String entry) {
    return split(withoutStar(entry)).port != ANY_PORT;
  }

  /**
   * Returns whether one of these entries names a host.
   *
   * @param host a name or an address; a port after it counts where {@code port} is not known
   * @param port where the call goes to, or {@link #ANY_PORT}
   */
  public static boolean name(Collection<String> entries, String host, int port) {
    Parts parts = split(host);
    String normal = normal(parts.host);
    int known = port == ANY_PORT ? parts.port : port;
    return entries.stream().anyMatch(entry -> matches(entry, normal, known));
  }

  private static boolean matches(String entry, String host, int port) {
    Parts parts = split(withoutStar(entry));
    if (parts.port != ANY_PORT && parts.port != port) {
      return false;
    }
    String name = normal(parts.host);
    return entry.startsWith(BELOW) ? host.endsWith("." + name) : host.equals(name);
  }

  private static String withoutStar(String entry) {
    return entry.startsWith(BELOW) ? entry.substring(BELOW.length()) : entry;
  }

  private static Parts split(String given) {
    String text = given.strip();
    if (text.startsWith("[")) {
      int bracket = text.indexOf(']');
      if (bracket < 0) {
        return new Parts(text.substring(1), ANY_PORT, false);
      }
      String host = text.substring(1, bracket);
      String rest = text.substring(bracket + 1);
      return rest.isEmpty()
          ? new Parts(host, ANY_PORT, true)
          : rest.startsWith(":") ? withPort(host, rest.substring(1)) : new Parts(host, 0, false);
    }
    int colon = text.indexOf(':');
    if (colon < 0 || text.indexOf(':', colon + 1) >= 0) {
      return new Parts(text, ANY_PORT, true);
    }
    return withPort(text.substring(0, colon), text.substring(colon + 1));
  }

  private static Parts withPort(String host, String port) {
    Matcher digits = DIGITS.matcher(port);
    return digits.matches()
        ? new Parts(host, Integer.parseInt(port), true)
        : new Parts(host, ANY_PORT, false);
  }

  /** One spelling for each host; a name that cannot be one stays, and matches itself. */
  private static String normal(String host) {
    String name = host.toLowerCase(Locale.ROOT);
    if (name.endsWith(".")) {
      name = name.substring(0, name.length() - 1);
    }
    if (name.indexOf(':') >= 0) {
      return IPV6.matcher(name).matches() ? address(name) : name;
    }
    if (name.chars().allMatch(c -> c < 128)) {
      return name;
    }
    try {
      return IDN.toASCII(name, IDN.ALLOW_UNASSIGNED).toLowerCase(Locale.ROOT);
    } catch (IllegalArgumentException noName) {
      return name;
    }
  }

  private static String address(String literal) {
    try {
      return InetAddress.getByName("[" + literal + "]").getHostAddress();
    } catch (UnknownHostException noAddress) {
      return literal;
    }
  }
}
