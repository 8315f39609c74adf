// Ref<T>: a pointer to a T that counts its holders, the last of which deletes it. Not for several threads at once, and so without the
// atomic instructions of std::shared_ptr, which a process with threads pays everywhere.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace forerun {

// What a Ref can point to derives from this. A copy begins without holders.
class Counted {
 public:
  Counted() = default;
  Counted(const Counted& /*other*/) noexcept {}
  Counted& operator=(const Counted& /*other*/) noexcept { return *this; }

 protected:
  ~Counted() = default;

 private:
  template <class T>
  friend class Ref;
  uint32_t holders_ = 0;
};

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t /*none*/) {}  // NOLINT(google-explicit-constructor)
  Ref(const Ref& other) noexcept : held_(other.held_) { hold(); }
  Ref(Ref&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    swap(other);
    return *this;
  }
  ~Ref() {
    if (held_ != nullptr && --held_->holders_ == 0) delete held_;
  }

  template <class... Arguments>
  static Ref make(Arguments&&... arguments) {
    Ref made;
    made.held_ = new T(std::forward<Arguments>(arguments)...);
    made.hold();
    return made;
  }

  void swap(Ref& other) noexcept { std::swap(held_, other.held_); }
  [[nodiscard]] T* get() const { return held_; }
  T* operator->() const { return held_; }
  T& operator*() const { return *held_; }
  explicit operator bool() const { return held_ != nullptr; }
  [[nodiscard]] uint32_t use_count() const { return held_ == nullptr ? 0 : held_->holders_; }

  friend bool operator==(const Ref& a, const Ref& b) { return a.held_ == b.held_; }
  friend bool operator==(const Ref& a, std::nullptr_t /*none*/) { return a.held_ == nullptr; }
  friend bool operator<(const Ref& a, const Ref& b) { return std::less<>()(a.held_, b.held_); }

 private:
  void hold() {
    if (held_ != nullptr) ++held_->holders_;
  }
  T* held_ = nullptr;
};

}  // namespace forerun
