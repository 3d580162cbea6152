package io.antipode.lineage;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.function.BinaryOperator;
import java.util.function.Predicate;

/** Sets as immutable sorted lists. Where two elements are in one place of the order, one stays. */
final class Sorted {
  private Sorted() {}

  static <T> List<T> of(
      Collection<T> elements, Comparator<? super T> order, BinaryOperator<T> stays) {
    List<T> sorted = new ArrayList<>(elements);
    sorted.sort(order);
    List<T> result = new ArrayList<>(sorted.size());
    for (T element : sorted) {
      add(result, element, order, stays);
    }
    return List.copyOf(result);
  }

  static <T> List<T> union(
      List<T> left, List<T> right, Comparator<? super T> order, BinaryOperator<T> stays) {
    if (right.isEmpty()) {
      return left;
    }
    if (left.isEmpty()) {
      return right;
    }
    List<T> result = new ArrayList<>(left.size() + right.size());
    int i = 0;
    int j = 0;
    while (i < left.size() || j < right.size()) {
      boolean fromLeft =
          j == right.size() || (i < left.size() && order.compare(left.get(i), right.get(j)) <= 0);
      add(result, fromLeft ? left.get(i++) : right.get(j++), order, stays);
    }
    return List.copyOf(result);
  }

  static <T> List<T> only(List<T> elements, Predicate<T> wanted) {
    return elements.stream().filter(wanted).toList();
  }

  private static <T> void add(
      List<T> result, T element, Comparator<? super T> order, BinaryOperator<T> stays) {
    int last = result.size() - 1;
    if (last >= 0 && order.compare(result.get(last), element) == 0) {
      result.set(last, stays.apply(result.get(last), element));
    } else {
      result.add(element);
    }
  }
}
