package io.antipode.reader;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** The service. It knows of Antipode by its properties, and by the barrier in {@link Posts}. */
@SpringBootApplication
public class Reader {
  /** Starts it. */
  public static void main(String[] args) {
    SpringApplication.run(Reader.class, args);
  }
}
