// Faults of users and of the environment: a stable code, the place, what was expected against what came, and a hint.
// Faults of the compiler itself are checks (check.h). The library never prints, aborts or exits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/check.h"

namespace aglow {

// How the program ends; the numbers are a contract with scripts.
enum class ExitCode : uint8_t {
  Ok = 0,
  Usage = 1,
  BadModel = 2,
  NotSupported = 3,
  OutOfResources = 4,
  Mismatch = 5,
  Device = 6,
  Internal = 7,
  File = 8,
  Interrupted = 130,
};

enum class Code : uint16_t {
#define AGLOW_ERROR(name, id, exitCode, title, explanation) name,
#include "support/error_codes.inc"
#undef AGLOW_ERROR
};

// One row of the table that `aglow explain` shows.
struct CodeInfo {
  Code code;
  std::string_view id;  // "E201": stable, never reused
  ExitCode exit;
  std::string_view title;
  std::string_view explanation;
};

const CodeInfo& codeInfo(Code code);
// Finds a row by its id in any letter case; null when there is none.
const CodeInfo* findCode(std::string_view id);
const std::vector<CodeInfo>& allCodes();

struct Error {
  Code code;
  std::string message;
  std::string where = {};  // "model.onnx: node 'conv1' (Conv)", outermost first
  std::string hint = {};

  // Puts an outer place in front of the inner one.
  Error at(std::string_view place) &&;
  Error withHint(std::string text) &&;
  // "error[E201] model.onnx: node 'conv1' (Conv): message" and the hint on a second line.
  std::string text() const;
};

struct Unit {};

// A value, or the error that kept it from being made.
template <class T>
class [[nodiscard]] Result {
public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& operator*() & {
    AGLOW_CHECK(ok(), "value of a failed Result");
    return std::get<0>(state_);
  }
  const T& operator*() const& {
    AGLOW_CHECK(ok(), "value of a failed Result");
    return std::get<0>(state_);
  }
  T&& operator*() && {
    AGLOW_CHECK(ok(), "value of a failed Result");
    return std::get<0>(std::move(state_));
  }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

private:
  std::variant<T, Error> state_;
};

// Success, or an error.
class [[nodiscard]] Status : public Result<Unit> {
public:
  Status() : Result(Unit{}) {}
  Status(Error error) : Result(std::move(error)) {}  // NOLINT(google-explicit-constructor)
};

}  // namespace aglow

#define AGLOW_CONCAT_(a, b) a##b
#define AGLOW_CONCAT(a, b) AGLOW_CONCAT_(a, b)

// AGLOW_TRY(auto x, f()); declares x from a Result, or returns its error.
#define AGLOW_TRY_(tmp, decl, ...)              \
  auto tmp = (__VA_ARGS__);                     \
  if (!tmp.ok()) return std::move(tmp).error(); \
  decl = *std::move(tmp)
#define AGLOW_TRY(decl, ...) AGLOW_TRY_(AGLOW_CONCAT(tryResult, __LINE__), decl, __VA_ARGS__)

// Returns the error of a Status or Result whose value is not wanted.
#define AGLOW_OK(...)                                       \
  do {                                                      \
    auto okResult = (__VA_ARGS__);                          \
    if (!okResult.ok()) return std::move(okResult).error(); \
  } while (false)
