// How commands tell what went wrong.
#include <fmt/format.h>

#include <algorithm>

#include "cli/cli.h"

namespace aglow::cli {

ExitCode report(const Diagnostics& diagnostics) {
  constexpr size_t kShown = 100;
  const size_t shown = std::min(diagnostics.errors().size(), kShown), count = diagnostics.count();
  for (size_t i = 0; i < shown; ++i) say(diagnostics.errors()[i].text() + "\n");
  if (count > shown) say("...\n");
  if (count > 1) say(fmt::format("{} errors\n", count));
  return diagnostics.exitCode();
}

ExitCode report(const Error& error) { return report(Diagnostics(error)); }

ExitCode finish(const Diagnosed<Unit>& done) { return done.ok() ? ExitCode::Ok : report(done.diagnostics()); }
ExitCode finish(const Status& done) { return done.ok() ? ExitCode::Ok : report(done.error()); }

}  // namespace aglow::cli
