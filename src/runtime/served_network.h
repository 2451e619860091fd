// One version of a network on a host: its replicas, the requests that wait for one, and its account. Runs are started
// whenever a request comes, a run ends or a device has room.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/executor.h"
#include "runtime/requests.h"

namespace aglow {

class ServedNetwork : public std::enable_shared_from_this<ServedNetwork> {
public:
  // What the host does for its networks.
  struct Host {
    std::shared_ptr<Clock> clock;
    int attempts = 1;
    std::function<void(const Request&)> ended;  // its reply was sent
  };

  ServedNetwork(std::string name, std::shared_ptr<const NetworkSource> source, NetworkOptions options, Host host);

  const std::string& name() const { return name_; }
  const NetworkOptions& options() const { return options_; }
  const std::shared_ptr<const NetworkSource>& source() const { return source_; }

  // Counts a request that is refused, or takes it on: Busy where too many are under way, UnknownNetwork where it goes,
  // Device where nothing can run it.
  Status admit(const RequestPtr& request);
  // Ends a request with an error, unless it has ended.
  bool end(const RequestPtr& request, const Error& why);
  // Starts what can be started.
  void pump();

  // Replicas as they come and go. One with a part on a device that has failed is let go of.
  void addReplica(std::shared_ptr<const Replica> replica);
  size_t replicas() const;
  // As many as there should be now: what the options say, and more under load.
  size_t wanted() const;
  bool isElastic() const { return options_.mostReplicas > options_.replicas; }
  // Looks at the load, again and again: one replica more where requests wait at two looks in a row, one less where
  // those that are left have had room to spare for a while. The one that is let go of ends its runs.
  void adaptToLoad();
  // A replica that was wanted because of the load has no place.
  void giveUpGrowth();
  // The devices that have a part of any replica.
  std::vector<const DeviceManager*> devicesInUse() const;
  void dropReplicasOn(const DeviceManager& device);
  // Ends what waits where nothing can run it, with the reason.
  void failWaiting(const Error& why);
  // Takes no more; the replicas go with the last run. `gone` is called then.
  void retire(std::function<void()> gone = {});
  bool retired() const;

  NetworkInfo info() const;
  NetworkStatistics statistics() const;

private:
  struct InUse {
    std::shared_ptr<const Replica> replica;
    size_t underWay = 0, most = 1;
  };
  using Batch = std::vector<RequestPtr>;

  bool start(const std::shared_ptr<InUse>& use, const Batch& batch);
  void finished(const std::shared_ptr<InUse>& use, const Batch& batch, int64_t rows, Outputs outputs);
  // Sends the reply, unless it was sent.
  bool answer(const RequestPtr& request, Outputs outputs, int64_t rows);
  void reply(const RequestPtr& request, Outputs outputs, int64_t rows);
  int64_t paddedRows(int64_t rows) const;
  // Those that may take one more run, least loaded first. Under the lock.
  std::vector<std::shared_ptr<InUse>> freeReplicas() const;
  void releaseWhereIdle();

  const std::string name_;
  const std::shared_ptr<const NetworkSource> source_;
  const std::shared_ptr<const PartGraph> graph_;
  const NetworkOptions options_;
  const Host host_;
  const bool hasState_;

  mutable std::mutex mutex_;  // of what follows
  WaitingRequests waiting_;
  std::vector<std::shared_ptr<InUse>> replicas_;
  size_t running_ = 0;   // requests in runs
  size_t underWay_ = 0;  // accepted and not answered
  size_t runs_ = 0;      // batches under way
  size_t wanted_ = 1;    // replicas
  int crowdedLooks_ = 0, quietLooks_ = 0;
  Clock::Timer delayed_ = 0;
  bool retired_ = false;
  std::string fault_;  // why there is no replica
  std::vector<std::function<void()>> gone_;
  NetworkStatistics account_;
};

}  // namespace aglow
