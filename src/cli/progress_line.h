// A line on the terminal that says how far a long step has come, and how long it will take. It appears after a moment,
// goes before anything else is printed, and is never in a pipe or file.
#pragma once

#include <string>
#include <string_view>

namespace aglow::cli {

// From now on, where stderr is a terminal: shows what is reported (support/progress.h).
void startProgressLine();
// Takes the line away; a later report draws it again. Before anything else goes to the terminal.
void clearProgressLine();

// "[#####     ] generating code, 5 of 10, 3 s, 3 s left", cut to the width.
std::string progressText(std::string_view what, int64_t done, int64_t count, double seconds, int width);

}  // namespace aglow::cli
