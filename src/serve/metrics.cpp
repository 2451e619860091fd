// Metrics: rows of a table, each a family with its kind and what it reads.
#include <fmt/format.h>

#include "serve/documents.h"

namespace aglow::serve {

namespace {

// A value of a label: quotes, backslashes and line ends are written with a backslash.
std::string label(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

class Text {
public:
  void family(std::string_view name, std::string_view kind, std::string_view help) {
    out_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, kind);
  }
  void sample(std::string_view name, std::string_view labels, double value) {
    out_ += labels.empty() ? fmt::format("{} {}\n", name, value) : fmt::format("{}{{{}}} {}\n", name, labels, value);
  }
  std::string take() { return std::move(out_); }

private:
  std::string out_;
};

template <class Of>
struct Row {
  std::string_view name, kind, help;
  double (*value)(const Of&);
};

constexpr Row<NetworkStatistics> kOfNetworks[] = {
    {"aglow_requests_accepted_total", "counter", "Requests taken", [](const auto& n) { return double(n.accepted); }},
    {"aglow_requests_refused_total", "counter", "Requests refused at once",
     [](const auto& n) { return double(n.refused); }},
    {"aglow_requests_succeeded_total", "counter", "Requests answered",
     [](const auto& n) { return double(n.succeeded); }},
    {"aglow_requests_failed_total", "counter", "Requests whose run failed",
     [](const auto& n) { return double(n.failed); }},
    {"aglow_requests_cancelled_total", "counter", "Requests taken back",
     [](const auto& n) { return double(n.cancelled); }},
    {"aglow_requests_expired_total", "counter", "Requests whose deadline passed",
     [](const auto& n) { return double(n.expired); }},
    {"aglow_requests_retried_total", "counter", "Runs again after a device failed",
     [](const auto& n) { return double(n.retried); }},
    {"aglow_requests_waiting", "gauge", "Requests in the queue", [](const auto& n) { return double(n.waiting); }},
    {"aglow_requests_running", "gauge", "Requests that run", [](const auto& n) { return double(n.running); }},
    {"aglow_replicas", "gauge", "Copies that can run", [](const auto& n) { return double(n.replicas); }},
    {"aglow_replicas_wanted", "gauge", "Copies that there should be", [](const auto& n) { return double(n.wanted); }},
    {"aglow_runs_total", "counter", "Runs, of one or more requests", [](const auto& n) { return double(n.runs); }},
};

constexpr Row<DeviceStatistics> kOfDevices[] = {
    {"aglow_device_healthy", "gauge", "1 where the device can run",
     [](const auto& d) { return d.healthy ? 1.0 : 0.0; }},
    {"aglow_device_memory_bytes", "gauge", "Bytes in use", [](const auto& d) { return double(d.memoryUsed); }},
    {"aglow_device_memory_limit_bytes", "gauge", "Bytes that may be used",
     [](const auto& d) { return double(d.memoryLimit); }},
    {"aglow_device_runs_total", "counter", "Runs on the device", [](const auto& d) { return double(d.runs); }},
    {"aglow_device_failures_total", "counter", "Times the device failed",
     [](const auto& d) { return double(d.failures); }},
    {"aglow_device_busy_seconds_total", "counter", "Time of all lanes", [](const auto& d) { return d.busySeconds; }},
    {"aglow_device_waiting", "gauge", "Runs in the device's queue", [](const auto& d) { return double(d.waiting); }},
};

constexpr Row<Counters> kOfServer[] = {
    {"aglow_http_connections", "gauge", "Open connections", [](const auto& c) { return double(c.connections); }},
    {"aglow_http_connections_refused_total", "counter", "Connections beyond the limit",
     [](const auto& c) { return double(c.refusedConnections); }},
    {"aglow_http_timeouts_total", "counter", "Connections closed for being slow",
     [](const auto& c) { return double(c.timeouts); }},
    {"aglow_http_body_bytes_read_total", "counter", "Bytes of requests",
     [](const auto& c) { return double(c.bytesIn); }},
    {"aglow_http_body_bytes_written_total", "counter", "Bytes of answers",
     [](const auto& c) { return double(c.bytesOut); }},
    {"aglow_buffered_bytes", "gauge", "Bytes of requests being read or run",
     [](const auto& c) { return double(c.buffered); }},
};

struct Latency {
  std::string_view name, help;
  const LatencyHistogram& (*of)(const NetworkStatistics&);
};
constexpr Latency kLatencies[] = {
    {"aglow_request_seconds", "From the request to its answer, on the host",
     [](const auto& n) -> auto& { return n.total; }},
    {"aglow_queue_seconds", "From the request to its run", [](const auto& n) -> auto& { return n.queue; }},
    {"aglow_run_seconds", "In the run", [](const auto& n) -> auto& { return n.run; }},
};
constexpr double kBounds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                              0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};

}  // namespace

std::string metricsText(const Service& service, const Counters& counters) {
  const HostStatistics statistics = service.statistics();
  const auto labelsOf = [](const NetworkStatistics& network) {
    return fmt::format(R"(model="{}",version="{}")", label(network.name), label(network.version));
  };
  Text text;
  for (const auto& row : kOfServer) {
    text.family(row.name, row.kind, row.help);
    text.sample(row.name, "", row.value(counters));
  }
  text.family("aglow_http_responses_total", "counter", "Answers over HTTP by their status");
  for (size_t i = 0; i < counters.http.size(); ++i)
    if (const uint64_t count = counters.http[i]; count > 0)
      text.sample("aglow_http_responses_total", fmt::format(R"(status="{}")", i), double(count));
  text.family("aglow_grpc_responses_total", "counter", "Answers over gRPC by their state");
  for (size_t i = 0; i < counters.grpc.size(); ++i)
    if (const uint64_t count = counters.grpc[i]; count > 0)
      text.sample("aglow_grpc_responses_total", fmt::format(R"(status="{}")", i), double(count));
  for (const auto& row : kOfNetworks) {
    text.family(row.name, row.kind, row.help);
    for (const auto& network : statistics.networks) text.sample(row.name, labelsOf(network), row.value(network));
  }
  for (const Latency& latency : kLatencies) {
    text.family(latency.name, "histogram", latency.help);
    for (const auto& network : statistics.networks) {
      const LatencyHistogram& times = latency.of(network);
      const std::string labels = labelsOf(network), bucket = fmt::format("{}_bucket", latency.name);
      for (const double bound : kBounds)
        text.sample(bucket, fmt::format(R"({},le="{}")", labels, bound), double(times.upTo(bound * 1e6)));
      text.sample(bucket, labels + R"(,le="+Inf")", double(times.count()));
      text.sample(fmt::format("{}_sum", latency.name), labels, times.sum() / 1e6);
      text.sample(fmt::format("{}_count", latency.name), labels, double(times.count()));
    }
  }
  for (const auto& row : kOfDevices) {
    text.family(row.name, row.kind, row.help);
    for (const auto& device : statistics.devices)
      text.sample(row.name, fmt::format(R"(device="{}")", label(device.name)), row.value(device));
  }
  return text.take();
}

}  // namespace aglow::serve
