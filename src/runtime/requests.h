// Requests that a host has accepted, and the order in which they wait.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/host.h"

namespace aglow {

struct Request {
  RunRequest run;
  RequestId id = 0;
  ReplyCallback done;
  int64_t rows = 1;
  std::string rowKey = {};  // of requests that may be joined
  bool alone = false;       // joined with others its run has failed
  int attempts = 0;
  Clock::Time accepted{}, started{};
  std::atomic<Clock::Timer> timer = 0;  // of the deadline
  std::atomic<bool> ended = false;      // whoever sets it sends the reply
};
using RequestPtr = std::shared_ptr<Request>;

// Those of more priority first, then as they came; one that comes back after a failed run has its old place.
class WaitingRequests {
public:
  void add(RequestPtr request);
  // False where it does not wait here.
  bool remove(const Request& request);
  bool empty() const { return requests_.empty(); }
  size_t size() const { return requests_.size(); }
  const Request& first() const { return *requests_.begin()->second; }
  // The first, and after it those that can be joined with it, up to so many rows.
  std::vector<RequestPtr> take(int64_t rows);
  // The rows that take() would give.
  int64_t rowsReady(int64_t rows) const;
  std::vector<RequestPtr> takeAll();

private:
  using Order = std::pair<int64_t, RequestId>;
  static Order orderOf(const Request& request) { return {-static_cast<int64_t>(request.run.priority), request.id}; }
  template <class Use>
  void eachJoined(int64_t rows, const Use& use) const;

  std::map<Order, RequestPtr> requests_;
};

}  // namespace aglow
