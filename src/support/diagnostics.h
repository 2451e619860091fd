// All that is wrong with a file, collected so that a user sees it at once.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

#include "support/error.h"

namespace aglow {

class Diagnostics {
public:
  Diagnostics() = default;
  Diagnostics(Error error) { add(std::move(error)); }  // NOLINT(google-explicit-constructor)

  // The same words a second time are not counted again. Of very many, the first are kept and the others counted.
  void add(Error error);
  bool empty() const { return errors_.empty(); }
  const std::vector<Error>& errors() const { return errors_; }
  size_t count() const { return count_; }
  // The gravest: a faulty model outweighs an unsupported one.
  ExitCode exitCode() const { return exit_; }
  Diagnostics at(std::string_view place) &&;

private:
  std::vector<Error> errors_;
  std::unordered_set<uint64_t> seen_;  // hashes of all texts
  size_t count_ = 0;
  ExitCode exit_ = ExitCode::Ok;
};

// A value, or all the errors that kept it from being made.
template <class T>
class [[nodiscard]] Diagnosed {
public:
  Diagnosed(T value) : state_(std::in_place_index<0>, std::move(value)) {}    // NOLINT(google-explicit-constructor)
  Diagnosed(Diagnostics d) : state_(std::in_place_index<1>, std::move(d)) {}  // NOLINT(google-explicit-constructor)
  Diagnosed(Error e) : Diagnosed(Diagnostics(std::move(e))) {}                // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const Diagnostics& diagnostics() const { return std::get<1>(state_); }

private:
  std::variant<T, Diagnostics> state_;
};

}  // namespace aglow
