#include "jobs.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <vector>

namespace aglow::differential {

std::optional<Counts> inProcesses(uint64_t jobs, const std::function<std::optional<Counts>(uint64_t job)>& share) {
  if (jobs == 1) return share(0);
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  std::vector<pid_t> children;
  for (uint64_t job = 0; job < jobs; ++job) {
    const pid_t child = fork();
    if (child == 0) {
      const std::optional<Counts> counts = share(job);
      std::cout << std::flush;
      // Not exit: what drivers do at the end of a process is not what is tested here.
      _exit(counts && write(ends[1], &*counts, sizeof *counts) == sizeof *counts ? 0 : 2);
    }
    if (child > 0) children.push_back(child);
  }
  close(ends[1]);
  bool all = children.size() == jobs;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (status == 0) continue;
    std::cerr << fmt::format("process {} ended with status {:#x}\n", child, status);
    all = false;
  }
  // Each is smaller than what a pipe takes as a whole, and holds.
  Counts sum;
  for (Counts one; read(ends[0], &one, sizeof one) == sizeof one;) {
    sum.graphs += one.graphs;
    sum.nodes += one.nodes;
    sum.fails += one.fails;
    sum.relaxed += one.relaxed;
    sum.differences += one.differences;
  }
  close(ends[0]);
  return all ? std::optional(sum) : std::nullopt;
}

}  // namespace aglow::differential
