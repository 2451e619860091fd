#include "runtime/requests.h"

namespace aglow {

void WaitingRequests::add(RequestPtr request) {
  const Order order = orderOf(*request);
  requests_.emplace(order, std::move(request));
}

bool WaitingRequests::remove(const Request& request) { return requests_.erase(orderOf(request)) > 0; }

// Calls with each until one would be too much: nobody overtakes a request that could be joined.
template <class Use>
void WaitingRequests::eachJoined(int64_t rows, const Use& use) const {
  if (requests_.empty()) return;
  const Request& first = *requests_.begin()->second;
  int64_t all = 0;
  for (const auto& [order, request] : requests_) {
    if (all > 0 && (first.alone || request->alone || request->rowKey != first.rowKey)) continue;
    if (all > 0 && all + request->rows > rows) return;
    all += request->rows;
    use(request);
    if (first.alone || all >= rows) return;
  }
}

std::vector<RequestPtr> WaitingRequests::take(int64_t rows) {
  std::vector<RequestPtr> taken;
  eachJoined(rows, [&](const RequestPtr& request) { taken.push_back(request); });
  for (const RequestPtr& request : taken) remove(*request);
  return taken;
}

int64_t WaitingRequests::rowsReady(int64_t rows) const {
  int64_t all = 0;
  eachJoined(rows, [&](const RequestPtr& request) { all += request->alone ? rows : request->rows; });
  return all;
}

std::vector<RequestPtr> WaitingRequests::takeAll() {
  std::vector<RequestPtr> all;
  for (auto& [order, request] : requests_) all.push_back(std::move(request));
  requests_.clear();
  return all;
}

}  // namespace aglow
