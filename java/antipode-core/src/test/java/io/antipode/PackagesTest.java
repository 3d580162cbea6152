package io.antipode;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The order of the packages, which a reader may rely on. */
class PackagesTest {
  private static final String ROOT = "io.antipode";

  /** Each package uses those before it alone. */
  private static final List<String> ORDER =
      List.of(
          "runtime",
          "lineage",
          "request",
          "barrier",
          "together",
          "propagation",
          "session",
          "telemetry",
          "dryrun",
          "autoconfigure");

  private static final JavaClasses CLASSES =
      new ClassFileImporter()
          .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
          .importPackages(ROOT);

  /** No package stands outside of the order. */
  @Test
  void everyPackageHasAPlace() {
    assertThat(
            CLASSES.stream()
                .map(each -> each.getPackageName())
                .filter(name -> !name.equals(ROOT))
                .map(name -> name.substring(ROOT.length() + 1))
                .collect(Collectors.toSet()))
        .isEqualTo(ORDER.stream().collect(Collectors.toSet()));
  }

  /** No package uses one that comes after it, and there are no circles. */
  @Test
  void noPackageUsesALaterOne() {
    for (int i = 0; i < ORDER.size() - 1; i++) {
      noClasses()
          .that()
          .resideInAPackage(ROOT + "." + ORDER.get(i))
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(packages(ORDER.subList(i + 1, ORDER.size())))
          .check(CLASSES);
    }
    slices().matching(ROOT + ".(*)..").should().beFreeOfCycles().check(CLASSES);
  }

  /** Within the library nobody goes through the facade that programs call. */
  @Test
  void onlyProgramsUseTheFacade() {
    classes()
        .that()
        .areAssignableTo(Antipode.class)
        .should()
        .onlyHaveDependentClassesThat()
        .haveNameMatching("io\\.antipode\\.Antipode(\\$.*)?")
        .check(CLASSES);
  }

  private static String[] packages(List<String> names) {
    return names.stream().map(name -> ROOT + "." + name).toArray(String[]::new);
  }
}
