// Runs the program and the driver of the C interface many times a second: a process that has loaded and linked
// everything once, and forks for each execution. Requests and answers are lines of JSON on stdin and stdout.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

int aglowMain(int argc, char** argv);                 // main.cpp, renamed
extern "C" int apiDriverMain(int argc, char** argv);  // api_driver.c

namespace {

using Json = nlohmann::json;

void limit(int what, rlim_t most) {
  const rlimit both{most, most};
  ::setrlimit(static_cast<__rlimit_resource>(what), &both);
}

void redirect(const char* path, int to) {
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || ::dup2(file, to) < 0) ::_exit(99);
  ::close(file);
}

[[noreturn]] void execute(const Json& request) {
  ::setpgid(0, 0);
  std::vector<std::string> words{"aglow"};
  for (const Json& word : request["args"]) words.push_back(word);
  const std::string folder = request["folder"];
  if (::chdir(folder.c_str()) != 0) ::_exit(99);
  const int input = ::open("/dev/null", O_RDONLY);
  ::dup2(input, STDIN_FILENO);
  redirect("stdout.txt", STDOUT_FILENO);
  redirect("stderr.txt", STDERR_FILENO);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, request["cpu_s"].get<rlim_t>());
  if (const auto bytes = request["memory_mb"].get<rlim_t>() << 20; bytes > 0) limit(RLIMIT_AS, bytes);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const bool program = request["tool"] == "aglow";
  std::exit((program ? aglowMain : apiDriverMain)(static_cast<int>(words.size()), argv.data()));
}

// Waits for the child, and ends it with all that it started when the time is over. Returns whether that was needed.
bool outlived(pid_t child, double seconds) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  pollfd waiting{.fd = handle, .events = POLLIN, .revents = 0};
  int ready = 0;
  do ready = ::poll(&waiting, 1, static_cast<int>(seconds * 1000));
  while (ready < 0 && errno == EINTR);
  ::close(handle);
  if (ready == 0) ::kill(-child, SIGKILL);
  return ready == 0;
}

Json serve(const Json& request) {
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child < 0) return {{"failed", "fork"}};
  if (child == 0) execute(request);
  const bool late = outlived(child, request["wall_s"]);
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  ::kill(-child, SIGKILL);  // what the program has started and left behind
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return {{"code", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status)},
          {"late", late},
          {"cpu_s", seconds(usage.ru_utime) + seconds(usage.ru_stime)},
          {"wall_s", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()},
          {"peak_mb", usage.ru_maxrss >> 10}};
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << serve(Json::parse(line)) << std::endl;
}
