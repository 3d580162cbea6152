package socialgraph.user;

import io.grpc.BindableService;
import io.grpc.Server;
import io.grpc.ServerBuilder;
import io.grpc.ServerInterceptor;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.util.List;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.SmartLifecycle;
import org.springframework.stereotype.Component;

/** Serves the application's gRPC services, with the interceptors that it has, as long as it runs. */
@Component
class GrpcServer implements SmartLifecycle {
  private final Server server;
  private volatile boolean running;

  GrpcServer(
      @Value("${social-graph.host:127.0.0.1}") String host,
      @Value("${social-graph.port:0}") int port,
      List<BindableService> services,
      ObjectProvider<ServerInterceptor> interceptors) {
    InetSocketAddress here = new InetSocketAddress(host, port);
    ServerBuilder<?> builder = NettyServerBuilder.forAddress(here);
    services.forEach(builder::addService);
    interceptors.orderedStream().forEach(builder::intercept);
    this.server = builder.build();
  }

  int port() {
    return server.getPort();
  }

  @Override
  public void start() {
    try {
      server.start();
      running = true;
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  @Override
  public void stop() {
    server.shutdownNow();
    running = false;
  }

  @Override
  public boolean isRunning() {
    return running;
  }
}
