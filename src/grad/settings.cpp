#include "grad/settings.h"

#include <fmt/format.h>

#include "support/quote.h"
#include "support/suggest.h"

namespace aglow::grad {

void Faults::unknown(std::string_view what, std::string_view name, const std::vector<std::string_view>& names) {
  add(fmt::format("there is no {} {}", what, quoted(std::string(name))));
  if (hint_.empty()) hint_ = didYouMean(std::string(name), names);
}

void Faults::add(std::string text) { text_ += (text_.empty() ? "" : "; ") + std::move(text); }

Status Faults::status() const {
  if (text_.empty()) return {};
  return Error{.code = Code::Usage, .message = text_, .where = {}, .hint = hint_};
}

SettingValues settingsOf(std::string_view row, std::span<const Setting> known, const GivenSettings& given,
                         Faults& faults) {
  SettingValues settings;
  std::vector<std::string_view> names;
  for (const Setting& setting : known) {
    settings[setting.name] = setting.value;
    names.push_back(setting.name);
  }
  for (const auto& [name, value] : given) {
    const auto it = settings.find(name);
    if (it == settings.end())
      faults.unknown(fmt::format("setting of '{}'", row), name, names);
    else
      it->second = value;
  }
  return settings;
}

}  // namespace aglow::grad
