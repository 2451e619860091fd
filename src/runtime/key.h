// Keys of what is compiled for types and values: equal exactly where all that was added is equal.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "graph/model_value.h"

namespace aglow {

class Key {
public:
  // Of a value that the code takes as it comes; that is the same in every run; or that decides something once.
  enum class Of : uint8_t { Type, Constant, Bytes };

  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void add(T number) {
    append(&number, sizeof number);
  }
  void add(std::string_view text);
  void add(const Type& type);
  // Its types, and more where that counts: bytes, or, of a large constant, the address. Whoever keeps something under
  // such a key keeps the constant alive too. Bytes always count where callers may change what lies at an address. Of
  // strings and maps, which no program takes, only that they are there.
  void add(const ModelValue& value, Of what);

  const std::string& bytes() const { return bytes_; }

private:
  void append(const void* data, size_t bytes) { bytes_.append(static_cast<const char*>(data), bytes); }

  std::string bytes_;
};

}  // namespace aglow
