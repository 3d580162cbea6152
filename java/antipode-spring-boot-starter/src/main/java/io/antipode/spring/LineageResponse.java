package io.antipode.spring;

import io.antipode.propagation.Headers;
import io.antipode.propagation.IncomingRequest;
import io.antipode.runtime.Counts;
import io.antipode.session.SessionRequest;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.logging.Level;
import org.jspecify.annotations.Nullable;

/** A response whose header gets the lineage as the response starts: with its first byte. */
final class LineageResponse extends HttpServletResponseWrapper {
  private final IncomingRequest request;
  private final @Nullable SessionRequest sessionRequest;
  private boolean started;
  private @Nullable ServletOutputStream stream;
  private @Nullable PrintWriter writer;

  LineageResponse(
      HttpServletResponse response,
      IncomingRequest request,
      @Nullable SessionRequest sessionRequest) {
    super(response);
    this.request = request;
    this.sessionRequest = sessionRequest;
  }

  /** The response starts: what is written to stores from now on is not in it. */
  void start() {
    if (started || isCommitted()) {
      return;
    }
    started = true;
    try {
      String answer = request.answer();
      if (answer != null) {
        setHeader(Headers.LINEAGE, answer);
      }
      if (sessionRequest != null) {
        setCookie(sessionRequest);
      }
    } catch (RuntimeException error) {
      Counts.LOG.log(Level.WARNING, "a request is answered without its lineage", error);
    }
  }

  private void setCookie(SessionRequest sessionRequest) {
    Map<String, List<String>> headers = new HashMap<>();
    for (String name : getHeaderNames()) {
      headers
          .computeIfAbsent(name.toLowerCase(Locale.ROOT), held -> new ArrayList<>())
          .addAll(getHeaders(name));
    }
    SessionRequest.Change change = sessionRequest.change(getStatus(), headers);
    if (change == null) {
      return;
    }
    setHeader("Cache-Control", change.cacheControl());
    // Not next to one that was set before: an error page starts the response again.
    String named = change.setCookie().substring(0, change.setCookie().indexOf('=') + 1);
    List<String> others =
        getHeaders("Set-Cookie").stream().filter(each -> !each.startsWith(named)).toList();
    setHeader("Set-Cookie", change.setCookie());
    others.forEach(each -> addHeader("Set-Cookie", each));
  }

  @Override
  public void reset() {
    super.reset();
    started = false;
    stream = null;
    writer = null;
  }

  @Override
  public void resetBuffer() {
    super.resetBuffer();
    started = false;
  }

  @Override
  public void flushBuffer() throws IOException {
    start();
    super.flushBuffer();
  }

  @Override
  public void sendError(int status) throws IOException {
    start();
    super.sendError(status);
  }

  @Override
  public void sendError(int status, String message) throws IOException {
    start();
    super.sendError(status, message);
  }

  @Override
  public void sendRedirect(String location) throws IOException {
    start();
    super.sendRedirect(location);
  }

  @Override
  public ServletOutputStream getOutputStream() throws IOException {
    ServletOutputStream held = stream;
    if (held == null) {
      held = new Starting(super.getOutputStream());
      stream = held;
    }
    return held;
  }

  @Override
  public PrintWriter getWriter() throws IOException {
    PrintWriter held = writer;
    if (held == null) {
      held = new PrintWriter(new StartingWriter(super.getWriter()));
      writer = held;
    }
    return held;
  }

  private final class Starting extends ServletOutputStream {
    private final ServletOutputStream stream;

    Starting(ServletOutputStream stream) {
      this.stream = stream;
    }

    @Override
    public void write(int one) throws IOException {
      start();
      stream.write(one);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
      start();
      stream.write(bytes, offset, length);
    }

    @Override
    public void flush() throws IOException {
      start();
      stream.flush();
    }

    @Override
    public void close() throws IOException {
      start();
      stream.close();
    }

    @Override
    public boolean isReady() {
      return stream.isReady();
    }

    @Override
    public void setWriteListener(WriteListener listener) {
      stream.setWriteListener(listener);
    }
  }

  private final class StartingWriter extends Writer {
    private final Writer writer;

    StartingWriter(Writer writer) {
      this.writer = writer;
    }

    @Override
    public void write(char[] characters, int offset, int length) throws IOException {
      start();
      writer.write(characters, offset, length);
    }

    @Override
    public void flush() throws IOException {
      start();
      writer.flush();
    }

    @Override
    public void close() throws IOException {
      start();
      writer.close();
    }
  }
}
