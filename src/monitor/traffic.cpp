#include "monitor/traffic.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "monitor/clock.h"

namespace forerun::monitor {
namespace {

constexpr uint16_t kTrafficPort = 5077;
constexpr size_t kTrafficChunk = 1 << 20;

Result<sockaddr_in> traffic_address(const std::string& text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kTrafficPort);
  if (inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1) {
    return Error{"'" + text + "' is no IPv4 address", "", ""};
  }
  return address;
}

Error socket_error(const std::string& what) { return Error{what + ": " + std::strerror(errno), "", ""}; }

}  // namespace

Result<Throughput> receive_traffic(const std::string& address, int senders) {
  const auto place = traffic_address(address);
  if (!place) return place.error();
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(listener, reinterpret_cast<const sockaddr*>(&*place), sizeof(*place)) != 0 || listen(listener, 16) != 0) {
    const Error error = socket_error("listening at " + address);
    close(listener);
    return error;
  }
  std::vector<pollfd> open;
  for (int i = 0; i < senders; ++i) open.push_back({accept(listener, nullptr, nullptr), POLLIN, 0});
  close(listener);
  Throughput total;
  std::vector<char> buffer(kTrafficChunk);
  const int64_t begin = monotonic_ns();
  int64_t last = begin;
  while (!open.empty() && poll(open.data(), open.size(), 20'000) > 0) {
    for (size_t i = open.size(); i-- > 0;) {
      if (open[i].revents == 0) continue;
      const ssize_t got = recv(open[i].fd, buffer.data(), buffer.size(), 0);
      if (got > 0) {
        total.bytes += static_cast<uint64_t>(got);
        last = monotonic_ns();
      } else if (got == 0 || errno != EINTR) {
        close(open[i].fd);
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }
  for (const pollfd& rest : open) close(rest.fd);
  total.seconds = static_cast<double>(last - begin) * 1e-9;
  return total;
}

Status send_traffic(const std::string& address, double seconds) {
  const auto place = traffic_address(address);
  if (!place) return place.error();
  int connection = -1;
  for (int attempt = 0; attempt < 250; ++attempt) {
    connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(connection, reinterpret_cast<const sockaddr*>(&*place), sizeof(*place)) == 0) break;
    close(connection);
    connection = -1;
    usleep(20'000);
  }
  if (connection < 0) return socket_error("connecting to " + address);
  const std::vector<char> chunk(kTrafficChunk);
  const int64_t end = monotonic_ns() + static_cast<int64_t>(seconds * 1e9);
  Status status;
  while (monotonic_ns() < end) {
    if (send(connection, chunk.data(), chunk.size(), MSG_NOSIGNAL) < 0 && errno != EINTR) {
      status = socket_error("sending to " + address);
      break;
    }
  }
  close(connection);
  return status;
}

}  // namespace forerun::monitor
