// What holds in a forked child.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace aglow::testing_support {

// Whether this holds in a child. One that hangs is ended by a signal.
template <class Holds>
bool inChild(const Holds& holds) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(holds() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace aglow::testing_support
