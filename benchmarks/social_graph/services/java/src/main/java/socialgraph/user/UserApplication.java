package socialgraph.user;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Says who the author of a post is. */
@SpringBootApplication
public class UserApplication {
  /** Starts it. Its arguments are NAME=VALUE, as those of every service; it ends when its input does. */
  public static void main(String[] args) throws IOException {
    PrintStream output = System.out;
    System.setOut(System.err); // Logs go there.
    for (String argument : args) {
      String[] parts = argument.split("=", 2);
      System.setProperty("social-graph." + parts[0], parts[1]);
    }
    try (var running = SpringApplication.run(UserApplication.class)) {
      output.println("{\"port\": " + running.getBean(GrpcServer.class).port() + "}");
      System.in.transferTo(OutputStream.nullOutputStream());
    }
  }
}
