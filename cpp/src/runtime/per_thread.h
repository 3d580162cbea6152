// State of each thread that destructors may still use.
#pragma once

#include <pthread.h>

#include <optional>
#include <utility>

namespace antipode {

/// The one value of a type that each thread has. It outlives the `thread_local` objects of its thread, and on the main
/// thread the static ones: their destructors may use it.
template <typename Value>
class PerThread {
 public:
  static Value& Mine() {
    if (mine_ == nullptr) {
      mine_ = new Value;
      static const std::optional<pthread_key_t> key = Key();
      if (key) pthread_setspecific(*key, mine_);
    }
    return *mine_;
  }

 private:
  /// POSIX calls destructors of keys after those of `thread_local` objects, and never as the process exits.
  static std::optional<pthread_key_t> Key() {
    pthread_key_t key{};
    if (pthread_key_create(&key, [](void*) { delete std::exchange(mine_, nullptr); }) != 0) return std::nullopt;
    return key;
  }

  static inline thread_local Value* mine_ = nullptr;
};

}  // namespace antipode
