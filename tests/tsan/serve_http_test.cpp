// A server over HTTP under ThreadSanitizer: clients, reloads, looks at its state, and the end, all at once.
#include "serve/http/server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "graph/builder.h"
#include "runtime/device.h"
#include "runtime/module_source.h"

namespace aglow::serve {
namespace {

// y = 2 x, of four numbers.
std::shared_ptr<const NetworkSource> doubling() {
  auto module = std::make_unique<Module>();
  Builder builder(*module->addFunction("main"));
  const Value x = builder.input("x", Type(ElemKind::Float32, {1, 4}));
  builder.output("y", builder.add(x, x));
  CompileOptions options;
  options.backend = kReferenceBackend;
  return *sourceOf(*compileModule(std::move(module), options));
}

// The answer to one request, on a connection of its own; empty where there is none.
std::string ask(uint16_t port, const std::string& request) {
  const int stream = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(stream, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::send(stream, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
    char bytes[4096];
    for (ssize_t got = 0; (got = ::recv(stream, bytes, sizeof bytes, 0)) > 0;)
      answer.append(bytes, static_cast<size_t>(got));
  }
  ::close(stream);
  return answer;
}

std::string get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"; }

std::string infer(int number) {
  const std::string body =
      R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[)" + std::to_string(number) + ",2,3,4]}]}";
  return "POST /v2/models/double/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(HttpServer, AnswersWhileModelsAreReplacedAndDevicesFail) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "tsan_models";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "double.onnx") << "read by nobody";
  auto host = *HostManager::create({.devices = *parseDevices("interpreter,name=a sim:interpreter,name=b,latency=50us"),
                                    .probe = std::chrono::milliseconds(2)});
  ServiceOptions options{.models = {}, .network = {.replicas = 2}, .add = {}};
  options.add = [](HostManager& to, const std::string& name, const std::string&, const NetworkOptions& network) {
    return to.addNetwork(name, doubling(), network);
  };
  Service service(*host, *Repository::create({folder.string()}), options);
  Counters counters;
  const Log log(LogLevel::Errors);
  const Router router(service, counters, log, {.limits = {}, .token = {}});
  auto server = HttpServer::start(router, {.port = 0});
  ASSERT_TRUE(server.ok()) << server.error().text();
  const uint16_t port = (*server)->port();
  std::atomic<bool> loaded = false;
  service.loadAll([](const std::string&, const Status& done) { EXPECT_TRUE(done.ok()); }, [&] { loaded = true; });
  while (!loaded) std::this_thread::yield();

  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int client = 0; client < 4; ++client)
    threads.emplace_back([&, client] {
      for (int i = 0; i < 40; ++i) {
        const int number = client * 100 + i;
        const std::string answer = ask(port, infer(number));
        if (answer.find("\"data\":[" + std::to_string(2 * number)) != std::string::npos) ++right;
      }
    });
  threads.emplace_back([&] {
    for (int i = 0; i < 10; ++i)
      EXPECT_NE(ask(port,
                    "POST /v2/repository/models/double/load HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                    "Content-Length: 0\r\n\r\n")
                    .find(" 200 "),
                std::string::npos);
  });
  threads.emplace_back([&] {
    for (int i = 0; i < 20; ++i)
      for (const char* path : {"/metrics", "/status", "/v2/models/double", "/v2/health/ready"})
        EXPECT_FALSE(ask(port, get(path)).empty());
  });
  threads.emplace_back([&] {
    for (int i = 0; i < 10; ++i) {
      host->devices()[1]->breakDown("pulled out");
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      host->devices()[1]->repair();
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 160);
  EXPECT_EQ((*server)->underWay(), 0U);
  // The end comes while some still ask.
  std::thread late([&] {
    for (int i = 0; i < 10; ++i) ask(port, infer(i));
  });
  (*server)->stopListening();
  late.join();
}

}  // namespace
}  // namespace aglow::serve
