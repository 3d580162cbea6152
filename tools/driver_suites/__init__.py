"""The own test suites of database drivers, once plain and once instrumented: the same passes."""
