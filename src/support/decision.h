// The answer to "can this be done": yes, or no with the reason.
#pragma once

#include <string>
#include <utility>

namespace aglow {

class [[nodiscard]] Decision {
public:
  static Decision yes() { return Decision(true, {}); }
  static Decision no(std::string reason) { return Decision(false, std::move(reason)); }

  explicit operator bool() const { return yes_; }
  const std::string& reason() const { return reason_; }  // empty for yes

private:
  Decision(bool yes, std::string reason) : yes_(yes), reason_(std::move(reason)) {}

  bool yes_;
  std::string reason_;
};

}  // namespace aglow
