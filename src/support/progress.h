// How far a long job has come. Whoever works reports, and a program that wants to show it says where to; nobody else
// sees a difference.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace aglow {

// `done` of `count` equal steps; a count of 0: nobody knows how many there are.
struct Progress {
  std::string_view what;
  int64_t done = 0;
  int64_t count = 0;
};

// From any thread. Texts live as long as the call.
void reportProgress(const Progress& progress);
// Before threads report. It must not throw, and is called by one thread at a time.
void showProgress(std::function<void(const Progress&)> show);

}  // namespace aglow
