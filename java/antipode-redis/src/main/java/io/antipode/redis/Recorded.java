package io.antipode.redis;

import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.output.CommandOutput;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A reply as it came, for the output of a command that may not see it yet. */
final class Recorded<K, V> extends CommandOutput<K, V, Boolean> {
  private final List<Consumer<CommandOutput<?, ?, ?>>> signals = new ArrayList<>();

  Recorded(RedisCodec<K, V> codec) {
    super(codec, true);
  }

  /** Hands the reply over. */
  void replay(CommandOutput<?, ?, ?> target) {
    signals.forEach(signal -> signal.accept(target));
  }

  private static @Nullable ByteBuffer copy(@Nullable ByteBuffer bytes) {
    if (bytes == null) {
      return null;
    }
    ByteBuffer copy = ByteBuffer.allocate(bytes.remaining());
    copy.put(bytes.duplicate());
    return copy.flip();
  }

  @Override
  @SuppressWarnings("NullAway") // Lettuce says null for a value that is not there.
  public void set(@Nullable ByteBuffer bytes) {
    ByteBuffer kept = copy(bytes);
    signals.add(target -> target.set(copy(kept)));
  }

  @Override
  @SuppressWarnings("NullAway")
  public void setSingle(@Nullable ByteBuffer bytes) {
    ByteBuffer kept = copy(bytes);
    signals.add(target -> target.setSingle(copy(kept)));
  }

  @Override
  @SuppressWarnings("NullAway")
  public void setBigNumber(@Nullable ByteBuffer bytes) {
    ByteBuffer kept = copy(bytes);
    signals.add(target -> target.setBigNumber(copy(kept)));
  }

  @Override
  public void set(long integer) {
    signals.add(target -> target.set(integer));
  }

  @Override
  public void set(double number) {
    signals.add(target -> target.set(number));
  }

  @Override
  public void set(boolean value) {
    signals.add(target -> target.set(value));
  }

  @Override
  public void setError(ByteBuffer error) {
    ByteBuffer kept = copy(error);
    super.setError(error);
    signals.add(target -> target.setError(copy(kept)));
  }

  @Override
  public void setError(String error) {
    super.setError(error);
    signals.add(target -> target.setError(error));
  }

  @Override
  public void complete(int depth) {
    signals.add(target -> target.complete(depth));
  }

  @Override
  public void multi(int count) {
    signals.add(target -> target.multi(count));
  }

  @Override
  public void multiArray(int count) {
    signals.add(target -> target.multiArray(count));
  }

  @Override
  public void multiPush(int count) {
    signals.add(target -> target.multiPush(count));
  }

  @Override
  public void multiMap(int count) {
    signals.add(target -> target.multiMap(count));
  }

  @Override
  public void multiSet(int count) {
    signals.add(target -> target.multiSet(count));
  }
}
