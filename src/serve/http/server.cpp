#include "serve/http/server.h"

#include <fmt/format.h>

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <charconv>
#include <list>
#include <thread>

namespace aglow::serve {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// What all connections of a server share.
struct Shared {
  const Router& router;
  std::atomic<size_t> underWay = 0;
  std::atomic<bool> ending = false;
};

// Connections that are to end read what the client still sends for a moment, or it would lose the answer; no more than
// this, however much comes.
constexpr size_t kDrainedBytes = size_t{4} << 20;
constexpr std::chrono::seconds kDrainTime{2};

std::string_view reasonOf(int status) {
  const auto text = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)));
  return {text.data(), text.size()};
}

using Plain = beast::tcp_stream;
using Secure = beast::ssl_stream<beast::tcp_stream>;

// One connection: reads a request, has it answered, writes the answer, and reads the next, which may have come already.
// All of it happens on one thread.
template <class Stream>
class Connection : public std::enable_shared_from_this<Connection<Stream>> {
public:
  template <class... Args>
  explicit Connection(Shared& shared, Args&&... args) : shared_(shared), stream_(std::forward<Args>(args)...) {
    ++shared_.router.counters().connections;
  }
  ~Connection() { --shared_.router.counters().connections; }

  void start() {
    if constexpr (std::is_same_v<Stream, Secure>) {
      expireIn(limits().headTime);
      stream_.async_handshake(asio::ssl::stream_base::server, [self = this->shared_from_this()](error_code fault) {
        if (!fault) self->waitForRequest();
      });
    } else {
      waitForRequest();
    }
  }

private:
  const Limits& limits() const { return shared_.router.limits(); }
  void expireIn(std::chrono::milliseconds time) { beast::get_lowest_layer(stream_).expires_after(time); }
  // A function as what happens next, with the connection kept alive.
  template <class F>
  auto then(F&& f) {
    return [self = this->shared_from_this(), f = std::forward<F>(f)](error_code fault, size_t bytes) mutable {
      if (fault == beast::error::timeout) ++self->shared_.router.counters().timeouts;
      f(fault, bytes);
    };
  }

  void waitForRequest() {
    if (buffer_.size() > 0) return readHead();
    expireIn(limits().idle);
    stream_.async_read_some(buffer_.prepare(kReadBytes), then([this](error_code fault, size_t bytes) {
                              if (fault) return;  // closed, or idle for too long
                              buffer_.commit(bytes);
                              readHead();
                            }));
  }

  void readHead() {
    request_ = {};
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(limits().header));
    parser_->body_limit(std::numeric_limits<uint64_t>::max());  // what is too long is refused in words
    expireIn(limits().headTime);
    http::async_read_header(stream_, buffer_, *parser_, then([this](error_code fault, size_t) { headRead(fault); }));
  }

  void headRead(error_code fault) {
    if (fault == http::error::header_limit)
      return refuse(431, fmt::format("headers are longer than {} bytes", limits().header));
    if (fault.category() == http::make_error_code(http::error::bad_method).category() &&
        fault != http::error::end_of_stream && fault != http::error::partial_message)
      return refuse(400, fmt::format("no HTTP: {}", fault.message()));
    if (fault) return;  // gone, or too slow
    const auto& head = parser_->get();
    request_.method = std::string(head.method_string());
    request_.target = std::string(head.target());
    request_.authorization = std::string(head[http::field::authorization]);
    request_.traceparent = std::string(head["traceparent"]);
    request_.encoding = std::string(head[http::field::content_encoding]);
    keepAlive_ = head.keep_alive();
    if (const auto jsonSize = head["Inference-Header-Content-Length"]; !jsonSize.empty()) {
      size_t size = 0;
      const auto [end, wrong] = std::from_chars(jsonSize.data(), jsonSize.data() + jsonSize.size(), size);
      if (wrong != std::errc() || end != jsonSize.data() + jsonSize.size())
        return refuse(400, "Inference-Header-Content-Length is no number");
      request_.jsonSize = size;
    }
    ++shared_.underWay;
    accepted_ = true;
    if (auto refused = shared_.router.refuseEarly(request_); refused && hasBody()) {
      keepAlive_ = false;
      return handle();  // refused again there, and counted
    }
    if (hasBody() && shared_.ending) return refuse(503, "the server ends");
    readBody();
  }

  bool hasBody() const { return parser_->chunked() || parser_->content_length().value_or(0) > 0; }

  void readBody() {
    if (!hasBody()) return handle();
    // The length of a chunked body is not known before its end: it counts as the longest.
    const uint64_t length = parser_->chunked() ? static_cast<uint64_t>(limits().body) : *parser_->content_length();
    auto body = Body::make(length, request_.jsonSize.value_or(0), limits(), shared_.router.counters());
    if (!body.ok()) return refuse(Router::fault(body.error()));
    request_.body = *std::move(body);
    if (parser_->get()[http::field::expect] == "100-continue") {
      static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      expireIn(limits().bodyTime);
      return asio::async_write(stream_, asio::buffer(kContinue), then([this](error_code fault, size_t) {
                                 if (fault) return abandon();
                                 fillBody();
                               }));
    }
    fillBody();
  }

  void fillBody() {
    expireIn(limits().bodyTime);
    const std::span<std::byte> bytes = request_.body->bytes();
    if (parser_->chunked()) {
      chunked_.emplace(std::move(*parser_));
      chunked_->body_limit(bytes.size());
      chunked_->get().body().data = bytes.data();
      chunked_->get().body().size = bytes.size();
      return http::async_read(
          stream_, buffer_, *chunked_, then([this](error_code fault, size_t) {
            const size_t left = chunked_->get().body().size;
            if (fault == http::error::need_buffer || fault == http::error::body_limit)
              return refuse(Router::fault(tooLarge(fmt::format("the body has more than {} bytes", limits().body))));
            if (fault) return abandon();
            request_.body->shrink(request_.body->bytes().size() - left);
            handle();
          }));
    }
    const size_t there = asio::buffer_copy(asio::buffer(bytes.data(), bytes.size()), buffer_.data());
    buffer_.consume(there);
    if (there == bytes.size()) return handle();
    // As much at a time as there is: by itself it asks for 64 KiB.
    const auto all = [](error_code fault, size_t) { return fault ? size_t{0} : std::numeric_limits<size_t>::max(); };
    asio::async_read(stream_, asio::buffer(bytes.data() + there, bytes.size() - there), all,
                     then([this](error_code fault, size_t) {
                       if (fault) return abandon();
                       handle();
                     }));
  }

  // The client has gone, or was too slow: there is nobody to answer.
  void abandon() {
    request_ = {};
    ended();
  }

  void handle() {
    beast::get_lowest_layer(stream_).expires_never();
    shared_.router.handle(std::move(request_), [self = this->shared_from_this()](HttpResponse response) {
      asio::dispatch(self->stream_.get_executor(),
                     [self, response = std::move(response)]() mutable { self->write(std::move(response)); });
    });
  }

  void refuse(int status, const std::string& why) { refuse(Router::fault(status, why)); }
  // What is left of the request is not read, so that the connection has to end.
  void refuse(HttpResponse response) {
    if (!accepted_) ++shared_.underWay;
    accepted_ = true;
    keepAlive_ = false;
    shared_.router.counters().countHttp(response.status);
    shared_.router.log().write(LogLevel::Requests, "request",
                               {{"protocol", "http"},
                                {"method", std::string_view(request_.method)},
                                {"path", std::string_view(request_.target)},
                                {"status", int64_t{response.status}}});
    request_ = {};
    write(std::move(response));
  }

  void write(HttpResponse response) {
    response_ = std::move(response);
    const bool close = !keepAlive_ || shared_.ending;
    head_ = fmt::format("HTTP/1.1 {} {}\r\nServer: aglow\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
                        response_.status, reasonOf(response_.status), response_.type, response_.size());
    for (const auto& [name, value] : response_.headers) head_ += fmt::format("{}: {}\r\n", name, value);
    head_ += close ? "Connection: close\r\n\r\n" : "Connection: keep-alive\r\n\r\n";
    std::vector<asio::const_buffer> parts{asio::buffer(head_), asio::buffer(response_.text)};
    for (const Blob& blob : response_.blobs) parts.emplace_back(blob.bytes.data(), blob.bytes.size());
    expireIn(limits().bodyTime);
    asio::async_write(stream_, parts, then([this, close](error_code fault, size_t) {
                        response_ = {};
                        ended();
                        if (fault) return;
                        if (close) return finish();
                        waitForRequest();
                      }));
  }

  void ended() {
    if (accepted_) --shared_.underWay;
    accepted_ = false;
  }

  void finish() {
    expireIn(kDrainTime);
    if constexpr (std::is_same_v<Stream, Secure>) {
      stream_.async_shutdown([self = this->shared_from_this()](error_code) {});
    } else {
      error_code ignored;
      stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      drain(0);
    }
  }
  void drain(size_t soFar) {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kReadBytes), then([this, soFar](error_code fault, size_t bytes) {
                              if (!fault && soFar + bytes < kDrainedBytes) drain(soFar + bytes);
                            }));
  }

  static constexpr size_t kReadBytes = size_t{16} << 10;

  Shared& shared_;
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::empty_body>> parser_;
  std::optional<http::request_parser<http::buffer_body>> chunked_;
  HttpRequest request_;
  HttpResponse response_;
  std::string head_;
  bool keepAlive_ = false;
  bool accepted_ = false;  // counted as under way
};

}  // namespace

class HttpServer::Impl {
public:
  Impl(const Router& router, const HttpOptions& options)
      : shared_{router}, options_(options), secure_(asio::ssl::context::tls_server) {
    for (int i = 0; i < options.threads; ++i) contexts_.emplace_back(std::make_unique<asio::io_context>(1));
    acceptor_.emplace(*contexts_.front());
  }
  ~Impl() {
    shared_.ending = true;
    for (auto& context : contexts_) context->stop();
    for (std::thread& thread : threads_) thread.join();
  }

  Status start() {
    const auto failed = [&](const error_code& fault) {
      return Error{.code = Code::Usage,
                   .message = fmt::format("cannot listen: {}", fault.message()),
                   .where = fmt::format("{}:{}", options_.address, options_.port)};
    };
    if (!options_.certificate.empty()) AGLOW_OK(useCertificate());
    error_code fault;
    const auto address = asio::ip::make_address(options_.address, fault);
    if (fault) return failed(fault);
    const tcp::endpoint endpoint(address, options_.port);
    acceptor_->open(endpoint.protocol(), fault);
    if (!fault) acceptor_->set_option(asio::socket_base::reuse_address(true), fault);
    if (!fault) acceptor_->bind(endpoint, fault);
    if (!fault) acceptor_->listen(asio::socket_base::max_listen_connections, fault);
    if (fault) return failed(fault);
    port_ = acceptor_->local_endpoint().port();
    accept();
    for (auto& context : contexts_) {
      works_.emplace_back(context->get_executor());
      threads_.emplace_back([&context] { context->run(); });
    }
    return {};
  }

  uint16_t port() const { return port_; }
  size_t underWay() const { return shared_.underWay; }
  void stopListening() {
    shared_.ending = true;
    asio::post(*contexts_.front(), [this] {
      error_code ignored;
      acceptor_->close(ignored);
    });
  }

private:
  Status useCertificate() {
    error_code fault;
    secure_.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                        asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
    secure_.use_certificate_chain_file(options_.certificate, fault);
    if (fault) return Error{.code = Code::FileRead, .message = fault.message(), .where = options_.certificate};
    secure_.use_private_key_file(options_.key, asio::ssl::context::pem, fault);
    if (fault) return Error{.code = Code::FileRead, .message = fault.message(), .where = options_.key};
    return {};
  }

  void accept() {
    asio::io_context& context = *contexts_[next_++ % contexts_.size()];
    acceptor_->async_accept(context, [this](error_code fault, tcp::socket socket) {
      if (!acceptor_->is_open()) return;
      if (!fault) {
        take(std::move(socket));
        return accept();
      }
      // Out of descriptors: connections that end give some back.
      const auto timer = std::make_shared<asio::steady_timer>(*contexts_.front(), std::chrono::milliseconds(50));
      timer->async_wait([this, timer](error_code) {
        if (acceptor_->is_open()) accept();
      });
    });
  }

  void take(tcp::socket socket) {
    Counters& counters = shared_.router.counters();
    error_code ignored;
    if (std::cmp_greater_equal(counters.connections.load(), shared_.router.limits().connections)) {
      ++counters.refusedConnections;
      static constexpr std::string_view kFull =
          "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n";
      socket.non_blocking(true, ignored);
      if (options_.certificate.empty()) socket.write_some(asio::buffer(kFull), ignored);
      return;
    }
    socket.set_option(tcp::no_delay(true), ignored);
    // Begun on the thread that everything of the connection happens on.
    const auto executor = socket.get_executor();
    if (options_.certificate.empty())
      begin(executor, std::make_shared<Connection<Plain>>(shared_, std::move(socket)));
    else
      begin(executor, std::make_shared<Connection<Secure>>(shared_, std::move(socket), secure_));
  }
  template <class Executor, class Pointer>
  void begin(const Executor& executor, Pointer connection) {
    asio::post(executor, [connection = std::move(connection)] { connection->start(); });
  }

  Shared shared_;
  const HttpOptions options_;
  asio::ssl::context secure_;
  std::vector<std::unique_ptr<asio::io_context>> contexts_;
  std::vector<asio::executor_work_guard<asio::io_context::executor_type>> works_;
  std::optional<tcp::acceptor> acceptor_;
  std::vector<std::thread> threads_;
  size_t next_ = 0;
  uint16_t port_ = 0;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::start(const Router& router, const HttpOptions& options) {
  auto impl = std::make_unique<Impl>(router, options);
  AGLOW_OK(impl->start());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const { return impl_->port(); }
void HttpServer::stopListening() { impl_->stopListening(); }
size_t HttpServer::underWay() const { return impl_->underWay(); }

}  // namespace aglow::serve
