// serve_load PORT REQUEST CLIENTS SECONDS [ANSWER]: sends the bytes of a file to 127.0.0.1 again and again, over as
// many connections as there are clients, each of which waits for its answer, and prints what came of it as JSON. The
// first answer is written to a file where one is named. Threads with blocking sockets: the client takes as little of
// the machine as it can.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

class Connection {
public:
  explicit Connection(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("no connection");
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The whole answer, head and body; it lives until the next one.
  std::string_view ask(const std::string& request) {
    for (size_t sent = 0; sent < request.size();) {
      const ssize_t bytes = ::send(socket_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (bytes <= 0) throw std::runtime_error("the server does not read");
      sent += static_cast<size_t>(bytes);
    }
    size_t have = 0, wanted = std::string::npos;
    while (have < wanted) {
      if (buffer_.size() < have + kRead) buffer_.resize(have + kRead);
      const ssize_t bytes = ::recv(socket_, buffer_.data() + have, buffer_.size() - have, 0);
      if (bytes <= 0) throw std::runtime_error("the server does not answer");
      have += static_cast<size_t>(bytes);
      if (wanted == std::string::npos) wanted = lengthOf(std::string_view(buffer_.data(), have));
    }
    return {buffer_.data(), have};
  }

private:
  static constexpr size_t kRead = size_t{1} << 18;

  // Of the answer, once its head is there.
  static size_t lengthOf(std::string_view text) {
    const size_t end = text.find("\r\n\r\n");
    if (end == std::string_view::npos) return std::string::npos;
    if (text.find(" 200 ") > text.find("\r\n")) throw std::runtime_error(std::string(text.substr(0, end)));
    constexpr std::string_view kLength = "\r\ncontent-length:";
    for (size_t at = 0; at < end; ++at)
      if (::strncasecmp(text.data() + at, kLength.data(), kLength.size()) == 0)
        return end + 4 + std::strtoull(text.data() + at + kLength.size(), nullptr, 10);
    throw std::runtime_error("the answer does not say how long it is");
  }

  int socket_;
  std::vector<char> buffer_ = std::vector<char>(kRead);
};

int run(int port, const std::string& request, int clients, double seconds, const char* answer) {
  if (answer != nullptr) std::ofstream(answer, std::ios::binary) << Connection(port).ask(request);
  std::vector<std::vector<double>> times(static_cast<size_t>(clients));
  std::atomic<bool> failed = false;
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::vector<std::thread> threads;
  for (std::vector<double>& own : times)
    threads.emplace_back([&own, &request, &failed, port, end] {
      try {
        Connection connection(port);
        while (Clock::now() < end) {
          const auto start = Clock::now();
          connection.ask(request);
          own.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
        }
      } catch (const std::exception& fault) {
        if (!failed.exchange(true)) std::cerr << fault.what() << "\n";
      }
    });
  for (std::thread& thread : threads) thread.join();
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  std::vector<double> all;
  for (const std::vector<double>& own : times) all.insert(all.end(), own.begin(), own.end());
  if (failed || all.empty()) return 1;
  std::sort(all.begin(), all.end());
  const auto quantile = [&](double part) {
    return all[static_cast<size_t>(part * static_cast<double>(all.size() - 1))];
  };
  std::cout << fmt::format(
      R"({{"rate": {:.3f}, "requests": {}, "p50_us": {:.1f}, "p90_us": {:.1f}, "p99_us": {:.1f}, "mean_us": {:.1f}}})",
      static_cast<double>(all.size()) / took, all.size(), quantile(0.5), quantile(0.9), quantile(0.99),
      std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size()));
  std::cout << "\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::cerr << "serve_load PORT REQUEST CLIENTS SECONDS [ANSWER]\n";
    return 1;
  }
  std::ifstream file(argv[2], std::ios::binary);
  const std::string request((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return run(std::atoi(argv[1]), request, std::atoi(argv[3]), std::atof(argv[4]), argc > 5 ? argv[5] : nullptr);
}
