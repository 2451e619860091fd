// Threads that leave signals to those of the program.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>

namespace aglow {

// With all signals blocked, in it and in what it starts.
template <class Body>
std::thread quietThread(Body body) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  struct Restore {
    const sigset_t& mask;
    ~Restore() { ::pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } const restore{before};
  return std::thread(std::move(body));
}

}  // namespace aglow
