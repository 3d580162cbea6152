package io.antipode.mongodb;

import static net.bytebuddy.matcher.ElementMatchers.isClone;
import static net.bytebuddy.matcher.ElementMatchers.isFinalizer;
import static net.bytebuddy.matcher.ElementMatchers.isVirtual;
import static net.bytebuddy.matcher.ElementMatchers.not;

import java.lang.invoke.MethodHandles;
import java.lang.reflect.Constructor;
import java.lang.reflect.Modifier;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.description.modifier.Visibility;
import net.bytebuddy.dynamic.loading.ClassLoadingStrategy;
import net.bytebuddy.implementation.FieldAccessor;
import net.bytebuddy.implementation.InvocationHandlerAdapter;

/**
 * Objects that stand for others: they have all of their public interfaces. Not proxies of the JDK:
 * Spring Data takes such a collection for one that it has bound to a session itself, and writes
 * outside of the transaction.
 */
final class Faces {
  private static final String FIELD = "face";
  private static final Map<Class<?>, Constructor<?>> MADE = new ConcurrentHashMap<>();
  private static final AtomicInteger NAMES = new AtomicInteger();

  private Faces() {}

  /** What every such object has besides. */
  interface Faced {
    Face face();

    void face(Face face);
  }

  /** Returns an object all of whose methods are those of a proxy. */
  static Object of(Face face, Object real) {
    try {
      Faced made = (Faced) MADE.computeIfAbsent(real.getClass(), Faces::constructor).newInstance();
      made.face(face);
      return made;
    } catch (ReflectiveOperationException impossible) { // We made its constructor.
      throw new IllegalStateException(impossible);
    }
  }

  private static Constructor<?> constructor(Class<?> real) {
    return made(real).getDeclaredConstructors()[0];
  }

  private static Class<?> made(Class<?> real) {
    return new ByteBuddy()
        .subclass(Object.class)
        .name(Faces.class.getPackageName() + ".Face$" + NAMES.incrementAndGet())
        .implement(interfaces(real).toArray(Class<?>[]::new))
        .defineField(FIELD, Face.class, Visibility.PRIVATE)
        .method(isVirtual().and(not(isFinalizer())).and(not(isClone())))
        .intercept(InvocationHandlerAdapter.toField(FIELD))
        .implement(Faced.class)
        .intercept(FieldAccessor.ofField(FIELD))
        .make()
        .load(
            Faces.class.getClassLoader(),
            ClassLoadingStrategy.UsingLookup.of(MethodHandles.lookup()))
        .getLoaded();
  }

  private static Set<Class<?>> interfaces(Class<?> real) {
    Set<Class<?>> types = new LinkedHashSet<>();
    for (Class<?> each = real; each != null; each = each.getSuperclass()) {
      for (Class<?> type : each.getInterfaces()) {
        if (Modifier.isPublic(type.getModifiers())) {
          types.add(type);
        }
      }
    }
    return types;
  }
}
