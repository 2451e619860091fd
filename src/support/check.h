// Checks of the compiler's own invariants. A failed one throws InternalError, which the API's edge turns into E700.
#pragma once

#include <stdexcept>
#include <string>

namespace aglow {

class InternalError : public std::logic_error {
public:
  using std::logic_error::logic_error;
};

[[noreturn]] void failCheck(const char* condition, const char* file, int line, const std::string& message);

}  // namespace aglow

#define AGLOW_CHECK(condition, message)                                            \
  do {                                                                             \
    if (!(condition)) ::aglow::failCheck(#condition, __FILE__, __LINE__, message); \
  } while (false)
