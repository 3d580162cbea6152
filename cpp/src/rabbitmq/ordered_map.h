// A map that knows which of its keys came first.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <utility>

namespace antipode::rabbitmq {

/// Whoever adds to it keeps it bounded, by `PopFirst`.
template <typename Key, typename Value>
class OrderedMap {
 public:
  [[nodiscard]] std::size_t size() const { return places_.size(); }
  /// Null where there is none.
  Value* Find(const Key& key) {
    const auto found = places_.find(key);
    return found == places_.end() ? nullptr : &found->second->second;
  }
  /// The value of a key, which is new unless the key is there already.
  Value& Add(const Key& key, Value value) {
    if (Value* present = Find(key)) return *present;
    const auto place = entries_.emplace(entries_.end(), key, std::move(value));
    places_.emplace(key, place);
    return place->second;
  }
  void Erase(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return;
    entries_.erase(found->second);
    places_.erase(found);
  }
  /// Removes the key that was added first, and returns it.
  Key PopFirst() {
    Key first = std::move(entries_.front().first);
    places_.erase(first);
    entries_.pop_front();
    return first;
  }

 private:
  std::list<std::pair<Key, Value>> entries_;
  std::map<Key, typename std::list<std::pair<Key, Value>>::iterator> places_;
};

}  // namespace antipode::rabbitmq
