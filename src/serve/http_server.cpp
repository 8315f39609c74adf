#include "serve/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>

#include "serve/event_stream.h"

namespace forerun::serve {

struct HttpServer::State {
  HttpOptions options;
  int socket = -1;
  uint16_t port = 0;
  MHD_Daemon* daemon = nullptr;
  Service* service = nullptr;
  std::atomic<int64_t> bodies = 0;  // bytes held
};

namespace {

constexpr size_t kEventBlock = 4096;

// One request on its way through a connection.
struct InFlight {
  InFlight(Service& of, std::atomic<int64_t>& held) : service(of), bodies(held) {}
  ~InFlight() { bodies -= static_cast<int64_t>(request.body.size()); }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  Service& service;
  std::atomic<int64_t>& bodies;
  Request request;
  std::unique_ptr<IncomingUpload> upload;
  std::optional<Reply> early;  // decided before the body was read
  std::mutex busy;             // guards what follows
  std::optional<Reply> reply;
  MHD_Connection* asleep = nullptr;
  bool asked = false;
};

// Shared with whoever gives the reply, which may outlive the connection.
struct Handle {
  std::shared_ptr<InFlight> flight;
};

struct HeaderTaker {
  RequestHead& head;
  int hosts = 0, origins = 0, tokens = 0, types = 0;
};

MHD_Result take_header(void* into, MHD_ValueKind /*kind*/, const char* key, const char* value) {
  auto& taker = *static_cast<HeaderTaker*>(into);
  const std::string text = value == nullptr ? "" : value;
  const auto is = [&](const char* name) { return strcasecmp(key, name) == 0; };
  if (is("Host")) {
    taker.head.host = text;
    ++taker.hosts;
  } else if (is("Origin")) {
    taker.head.origin = text;
    ++taker.origins;
  } else if (is("Authorization")) {
    taker.head.authorization = text;
    ++taker.tokens;
  } else if (is("Content-Type")) {
    taker.head.content_type = text;
    ++taker.types;
  } else if (is("Sec-Fetch-Site")) {
    taker.head.site = text;
  } else if (is("Cookie")) {
    taker.head.cookie += (taker.head.cookie.empty() ? "" : "; ") + text;
  } else if (is("If-None-Match")) {
    taker.head.if_none_match = text;
  }
  return MHD_YES;
}

struct QueryTaker {
  std::map<std::string, std::string>& query;
  std::optional<Error> fault;
};

MHD_Result take_query(void* into, MHD_ValueKind /*kind*/, const char* key, const char* value) {
  auto& taker = *static_cast<QueryTaker*>(into);
  auto name = percent_decoded(key), text = percent_decoded(value == nullptr ? "" : value);
  if (!name || !text) {
    taker.fault = name ? text.error() : name.error();
  } else if (!taker.query.emplace(std::move(*name), std::move(*text)).second) {
    taker.fault = Error{"a word is given twice", "the query", "give it once"};
  }
  return MHD_YES;
}

ssize_t read_events(void* of, uint64_t /*position*/, char* into, size_t most) {
  auto& stream = **static_cast<std::shared_ptr<EventStream>*>(of);
  const EventStream::Piece piece = stream.read(into, most);
  return piece.ended ? MHD_CONTENT_READER_END_OF_STREAM : static_cast<ssize_t>(piece.bytes);
}

void free_events(void* of) {
  auto* stream = static_cast<std::shared_ptr<EventStream>*>(of);
  (*stream)->detach();
  delete stream;
}

void free_body(void* body) { delete static_cast<std::string*>(body); }

// The library reads it piece by piece, and closes it.
MHD_Response* file_response(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return nullptr;
  struct stat about {};
  MHD_Response* response =
      fstat(file, &about) == 0 ? MHD_create_response_from_fd64(static_cast<uint64_t>(about.st_size), file) : nullptr;
  if (response == nullptr) close(file);
  return response;
}

MHD_Response* response_of(MHD_Connection* connection, Reply& reply) {
  if (!reply.file.empty()) return file_response(reply.file);
  if (reply.events) {
    reply.events->attach([connection] { MHD_suspend_connection(connection); },
                         [connection] { MHD_resume_connection(connection); });
    auto* stream = new std::shared_ptr<EventStream>(reply.events);
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kEventBlock, read_events, stream, free_events);
  }
  auto* body = new std::string(std::move(reply.body));
  return MHD_create_response_from_buffer_with_free_callback_cls(body->size(), body->data(), free_body, body);
}

MHD_Result send_reply(MHD_Connection* connection, Service& service, Reply reply) {
  ++service.traffic().by_status[std::clamp(reply.status / 100, 1, 5)];
  MHD_Response* response = response_of(connection, reply);
  if (response == nullptr) return MHD_NO;
  const auto add = [&](const char* name, const std::string& value) {
    MHD_add_response_header(response, name, value.c_str());
  };
  if (!reply.type.empty()) add("Content-Type", reply.type);
  add("X-Content-Type-Options", "nosniff");
  add("Referrer-Policy", "no-referrer");
  add("Cross-Origin-Resource-Policy", "same-origin");
  add("Cache-Control", "no-store");
  for (const auto& [name, value] : reply.headers) add(name.c_str(), value);
  const auto unless_said = [&](const char* name, const char* value) {
    const bool said = std::any_of(reply.headers.begin(), reply.headers.end(),
                                  [&](const auto& header) { return header.first == name; });
    if (!said) add(name, value);
  };
  unless_said("Cross-Origin-Opener-Policy", "same-origin");
  unless_said("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  const MHD_Result queued = MHD_queue_response(connection, static_cast<unsigned>(reply.status), response);
  MHD_destroy_response(response);
  return queued;
}

// Asks the service. The connection sleeps until the reply is there, where it is not at once.
MHD_Result ask(MHD_Connection* connection, const std::shared_ptr<InFlight>& flight) {
  flight->asked = true;
  const Done done = [weak = std::weak_ptr<InFlight>(flight)](Reply reply) {
    const auto still = weak.lock();
    if (!still) return;  // the connection is gone
    const std::lock_guard lock(still->busy);
    still->reply = std::move(reply);
    if (still->asleep != nullptr) MHD_resume_connection(std::exchange(still->asleep, nullptr));
  };
  if (flight->upload) {
    flight->service.finish_upload(flight->request, *flight->upload, done);
    flight->upload.reset();
  } else {
    flight->service.handle(flight->request, done);
  }
  const std::lock_guard lock(flight->busy);
  if (flight->reply) return send_reply(connection, flight->service, std::move(*flight->reply));
  flight->asleep = connection;
  MHD_suspend_connection(connection);
  return MHD_YES;
}

void take_body(InFlight& flight, std::string_view bytes) {
  if (flight.early) return;  // read on, to be heard
  if (flight.upload) {
    if (const Status status = flight.upload->write(bytes); !status.ok()) {
      flight.upload.reset();
      flight.early = problem(413, status.error());
    }
    return;
  }
  if (flight.request.body.size() + bytes.size() > HttpServer::kLargestBody) {
    flight.early = problem(413, {"a question may have 1 MiB", "the body", "files go to POST /api/v1/uploads"});
    return;
  }
  if ((flight.bodies += static_cast<int64_t>(bytes.size())) > HttpServer::kAllBodies) {
    flight.bodies -= static_cast<int64_t>(bytes.size());
    flight.early = problem(429, {"too many questions come in at once", "", "try again in a moment"});
    return;
  }
  flight.request.body.append(bytes);
}

}  // namespace

// libmicrohttpd's callbacks; a struct so that they see State.
struct HttpCallbacks {
  static MHD_Result answer(void* of, MHD_Connection* connection, const char* url, const char* method,
                           const char* /*version*/, const char* data, size_t* size, void** at) {
    auto& server = *static_cast<HttpServer::State*>(of);
    if (*at == nullptr) {
      auto flight = begin(server, connection, url, method);
      *at = new Handle{flight};
      // Answered before its body comes: who may not ask is not read.
      return flight->early ? send_reply(connection, *server.service, *flight->early) : MHD_YES;
    }
    const auto& flight = static_cast<Handle*>(*at)->flight;
    if (*size > 0) {
      take_body(*flight, {data, *size});
      *size = 0;
      return MHD_YES;
    }
    if (flight->early) return send_reply(connection, *server.service, *flight->early);
    if (!flight->asked) return ask(connection, flight);
    const std::lock_guard lock(flight->busy);
    if (!flight->reply) return MHD_YES;
    return send_reply(connection, *server.service, std::move(*flight->reply));
  }

  static void completed(void* /*of*/, MHD_Connection* /*connection*/, void** at, MHD_RequestTerminationCode /*why*/) {
    delete static_cast<Handle*>(*at);
    *at = nullptr;
  }

  // Decoded by parse_path alone, once.
  static size_t leave_as_it_is(void* /*of*/, MHD_Connection* /*connection*/, char* text) { return strlen(text); }

  // The head of a request, and what is known against it already.
  static std::shared_ptr<InFlight> begin(HttpServer::State& server, MHD_Connection* connection, const char* url,
                                         const char* method) {
    auto flight = std::make_shared<InFlight>(*server.service, server.bodies);
    Request& request = flight->request;
    request.head.method = method;
    request.head.target = url;
    HeaderTaker headers{request.head};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, take_header, &headers);
    request.head.doubled = headers.hosts > 1 || headers.origins > 1 || headers.tokens > 1 || headers.types > 1;
    QueryTaker query{request.query, std::nullopt};
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, take_query, &query);
    auto path = parse_path(url);
    if (path) request.path = std::move(*path);
    flight->early = server.service->refused(request);
    if (flight->early) return flight;
    if (!path || query.fault) {
      flight->early = problem(400, path ? *query.fault : path.error());
      return flight;
    }
    if (Service::is_upload(request)) {
      auto upload = server.service->begin_upload();
      if (upload) {
        flight->upload = std::move(*upload);
      } else {
        flight->early = problem(500, upload.error());
      }
    }
    return flight;
  }
};

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpServer::~HttpServer() { stop(); }

uint16_t HttpServer::port() const { return state_->port; }

Result<std::unique_ptr<HttpServer>> HttpServer::bind(const HttpOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  const std::string where = fmt::format("{}:{}", options.address, options.port);
  sockaddr_storage address{};
  socklen_t length = 0;
  auto* four = reinterpret_cast<sockaddr_in*>(&address);  // NOLINT
  auto* six = reinterpret_cast<sockaddr_in6*>(&address);  // NOLINT
  if (inet_pton(AF_INET, options.address.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(options.port);
    length = sizeof(sockaddr_in);
  } else if (inet_pton(AF_INET6, options.address.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(options.port);
    length = sizeof(sockaddr_in6);
  } else {
    return Error{"is no address of a machine", "--host " + options.address, "give one as 127.0.0.1, ::1 or 0.0.0.0"};
  }
  state->socket = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(state->socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (address.ss_family == AF_INET6) setsockopt(state->socket, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
  auto* general = reinterpret_cast<sockaddr*>(&address);  // NOLINT
  if (state->socket < 0 || ::bind(state->socket, general, length) != 0 || listen(state->socket, 511) != 0) {
    const int code = errno;
    if (state->socket >= 0) close(state->socket);
    return Error{std::string("cannot listen: ") + strerror(code), where,
                 code == EADDRINUSE ? "another program listens there: give another --port, or none"
                                    : "give another --port or --host"};
  }
  getsockname(state->socket, general, &length);
  state->port = ntohs(address.ss_family == AF_INET ? four->sin_port : six->sin6_port);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

Status HttpServer::start(Service& service) {
  state_->service = &service;
  // As many files as the system lets us, so that idle connections do not keep others out.
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  constexpr rlim_t kOthers = 200;  // the store, workers, uploads
  const auto room =
      files.rlim_cur == RLIM_INFINITY
          ? state_->options.connections
          : static_cast<unsigned>(std::min<rlim_t>(files.rlim_cur - kOthers, state_->options.connections));
  state_->daemon = MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr, &HttpCallbacks::answer,
      state_.get(), MHD_OPTION_LISTEN_SOCKET, state_->socket, MHD_OPTION_CONNECTION_LIMIT, room,
      MHD_OPTION_CONNECTION_TIMEOUT, state_->options.idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      kConnectionMemory, MHD_OPTION_NOTIFY_COMPLETED, &HttpCallbacks::completed, nullptr, MHD_OPTION_UNESCAPE_CALLBACK,
      &HttpCallbacks::leave_as_it_is, nullptr, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
  if (state_->daemon == nullptr)
    return Error{"the server cannot be started", "", "see the limits on threads and files"};
  return {};
}

void HttpServer::stop() {
  if (state_->daemon != nullptr) {
    MHD_stop_daemon(std::exchange(state_->daemon, nullptr));  // closes the socket too
    state_->socket = -1;
  }
  if (state_->socket >= 0) close(std::exchange(state_->socket, -1));
}

}  // namespace forerun::serve
