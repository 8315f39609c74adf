#include "monitor/netlink.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace forerun::monitor {
namespace {

constexpr size_t kAnswerBytes = 8192;

// A netlink message as it grows: a header, a fixed part, then attributes that may nest.
class Message {
 public:
  template <class Body>
  Message(uint16_t type, uint16_t flags, const Body& body) {
    bytes_.resize(NLMSG_LENGTH(sizeof(Body)));
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    std::memcpy(bytes_.data(), &header, sizeof(header));
    std::memcpy(bytes_.data() + NLMSG_HDRLEN, &body, sizeof(Body));
    pad();
  }

  void add(uint16_t type, const void* data, size_t size) {
    const size_t begin = open(type);
    raw(data, size);
    close(begin);
  }
  void add(uint16_t type, const std::string& text) { add(type, text.c_str(), text.size() + 1); }
  void add_number(uint16_t type, uint32_t number) { add(type, &number, sizeof(number)); }

  // A nested attribute: what is added until `close` belongs to it.
  size_t open(uint16_t type) {
    const size_t begin = bytes_.size();
    rtattr attribute{};
    attribute.rta_type = type;
    raw(&attribute, sizeof(attribute));
    return begin;
  }
  void close(size_t begin) {
    const auto length = static_cast<uint16_t>(bytes_.size() - begin);
    std::memcpy(bytes_.data() + begin + offsetof(rtattr, rta_len), &length, sizeof(length));
    pad();
  }
  void raw(const void* data, size_t size) {
    const char* first = static_cast<const char*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }

  std::vector<char>& bytes() { return bytes_; }

 private:
  void pad() { bytes_.resize(NLMSG_ALIGN(bytes_.size())); }
  std::vector<char> bytes_;
};

std::string remedy_of(int code) {
  if (code == EPERM || code == EACCES) return "run as root (network administration is not allowed here)";
  if (code == EOPNOTSUPP || code == ENOENT) return "this kernel was built without it";
  return "";
}

Result<int> index_of(const std::string& name) {
  const unsigned index = if_nametoindex(name.c_str());
  if (index == 0) return Error{"there is no network interface " + name, "", ""};
  return static_cast<int>(index);
}

ifinfomsg link_body() {
  ifinfomsg body{};
  body.ifi_family = AF_UNSPEC;
  return body;
}

}  // namespace

RateLimit RateLimit::of(uint64_t bits_per_second) {
  constexpr uint64_t kMost = 1U << 30;
  const uint64_t bytes = bits_per_second / 8;
  return {bits_per_second, static_cast<uint32_t>(std::clamp<uint64_t>(bytes / 1000, 256U << 10, kMost)),
          static_cast<uint32_t>(std::clamp<uint64_t>(bytes / 50, 256U << 20, kMost))};
}

Result<uint64_t> parse_rate(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end == nullptr ? "" : end;
  const double scale = unit == "G" ? 1e9 : unit == "M" ? 1e6 : unit == "K" ? 1e3 : 0;
  const double rate = number * scale;
  if (!(rate >= 1e4 && rate <= 1e12)) return Error{"'" + text + "' is no rate", "", "give one such as 10G or 500M"};
  return static_cast<uint64_t>(rate + 0.5);
}

Result<Netlink> Netlink::open() {
  const int socket = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (socket < 0) return Error{std::string("no netlink socket: ") + std::strerror(errno), "", remedy_of(errno)};
  return Netlink(socket);
}

Netlink::Netlink(Netlink&& other) noexcept : socket_(std::exchange(other.socket_, -1)), sequence_(other.sequence_) {}

Netlink::~Netlink() {
  if (socket_ >= 0) ::close(socket_);
}

Status Netlink::ask(std::vector<char>& message, const std::string& what) {
  const auto length = static_cast<uint32_t>(message.size());
  ++sequence_;
  std::memcpy(message.data() + offsetof(nlmsghdr, nlmsg_len), &length, sizeof(length));
  std::memcpy(message.data() + offsetof(nlmsghdr, nlmsg_seq), &sequence_, sizeof(sequence_));
  if (::send(socket_, message.data(), message.size(), 0) < 0) {
    return Error{what + ": " + std::strerror(errno), "", remedy_of(errno)};
  }
  alignas(nlmsghdr) std::array<char, kAnswerBytes> answer{};
  while (true) {
    const ssize_t got = ::recv(socket_, answer.data(), answer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr)))) {
      return Error{what + ": the kernel gave no answer", "", ""};
    }
    nlmsghdr header{};
    std::memcpy(&header, answer.data(), sizeof(header));
    if (header.nlmsg_seq != sequence_ || header.nlmsg_type != NLMSG_ERROR) continue;
    nlmsgerr outcome{};
    std::memcpy(&outcome, answer.data() + NLMSG_HDRLEN, sizeof(outcome));
    if (outcome.error == 0) return {};
    return Error{what + ": " + std::strerror(-outcome.error), "", remedy_of(-outcome.error)};
  }
}

Status Netlink::add_bridge(const std::string& name) {
  Message message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, link_body());
  message.add(IFLA_IFNAME, name);
  const size_t info = message.open(IFLA_LINKINFO);
  message.add(IFLA_INFO_KIND, std::string("bridge"));
  message.close(info);
  return ask(message.bytes(), "adding the bridge " + name);
}

Status Netlink::add_veth(const std::string& name, const std::string& peer, int peer_pid) {
  Message message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, link_body());
  message.add(IFLA_IFNAME, name);
  const size_t info = message.open(IFLA_LINKINFO);
  message.add(IFLA_INFO_KIND, std::string("veth"));
  const size_t data = message.open(IFLA_INFO_DATA);
  const size_t other = message.open(VETH_INFO_PEER);
  const ifinfomsg body = link_body();
  message.raw(&body, sizeof(body));
  message.add(IFLA_IFNAME, peer);
  message.add_number(IFLA_NET_NS_PID, static_cast<uint32_t>(peer_pid));
  message.close(other);
  message.close(data);
  message.close(info);
  return ask(message.bytes(), "adding the veth pair " + name);
}

Status Netlink::set_up(const std::string& name) {
  const auto index = index_of(name);
  if (!index) return index.error();
  ifinfomsg body = link_body();
  body.ifi_index = *index;
  body.ifi_flags = IFF_UP;
  body.ifi_change = IFF_UP;
  Message message(RTM_NEWLINK, 0, body);
  return ask(message.bytes(), "bringing up " + name);
}

Status Netlink::set_master(const std::string& name, const std::string& bridge) {
  const auto index = index_of(name), master = index_of(bridge);
  if (!index) return index.error();
  if (!master) return master.error();
  ifinfomsg body = link_body();
  body.ifi_index = *index;
  Message message(RTM_NEWLINK, 0, body);
  message.add_number(IFLA_MASTER, static_cast<uint32_t>(*master));
  return ask(message.bytes(), "joining " + name + " to " + bridge);
}

Status Netlink::add_address(const std::string& name, const std::string& ipv4, int prefix) {
  const auto index = index_of(name);
  if (!index) return index.error();
  in_addr address{};
  if (inet_pton(AF_INET, ipv4.c_str(), &address) != 1) return Error{"'" + ipv4 + "' is no IPv4 address", "", ""};
  ifaddrmsg body{};
  body.ifa_family = AF_INET;
  body.ifa_prefixlen = static_cast<uint8_t>(prefix);
  body.ifa_index = static_cast<uint32_t>(*index);
  Message message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, body);
  message.add(IFA_LOCAL, &address, sizeof(address));
  message.add(IFA_ADDRESS, &address, sizeof(address));
  return ask(message.bytes(), "giving " + name + " the address " + ipv4);
}

Status Netlink::add_default_route(const std::string& gateway) {
  in_addr address{};
  if (inet_pton(AF_INET, gateway.c_str(), &address) != 1) return Error{"'" + gateway + "' is no IPv4 address", "", ""};
  rtmsg body{};
  body.rtm_family = AF_INET;
  body.rtm_table = RT_TABLE_MAIN;
  body.rtm_protocol = RTPROT_STATIC;
  body.rtm_scope = RT_SCOPE_UNIVERSE;
  body.rtm_type = RTN_UNICAST;
  Message message(RTM_NEWROUTE, NLM_F_CREATE, body);
  message.add(RTA_GATEWAY, &address, sizeof(address));
  return ask(message.bytes(), "adding the route through " + gateway);
}

Status Netlink::limit_rate(const std::string& name, const RateLimit& limit) {
  const auto index = index_of(name);
  if (!index) return index.error();
  tcmsg body{};
  body.tcm_family = AF_UNSPEC;
  body.tcm_ifindex = *index;
  body.tcm_parent = TC_H_ROOT;
  body.tcm_handle = 1U << 16;
  Message message(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, body);
  message.add(TCA_KIND, std::string("tbf"));
  const size_t options = message.open(TCA_OPTIONS);
  const uint64_t bytes_per_second = limit.bits_per_second / 8;
  tc_tbf_qopt parameters{};
  parameters.rate.linklayer = TC_LINKLAYER_ETHERNET;  // the kernel then needs no table of transmission times
  parameters.rate.rate = static_cast<uint32_t>(std::min<uint64_t>(bytes_per_second, UINT32_MAX));
  parameters.limit = limit.queue_bytes;
  message.add(TCA_TBF_PARMS, &parameters, sizeof(parameters));
  message.add_number(TCA_TBF_BURST, limit.burst_bytes);
  if (bytes_per_second >= UINT32_MAX) message.add(TCA_TBF_RATE64, &bytes_per_second, sizeof(bytes_per_second));
  message.close(options);
  return ask(message.bytes(), "limiting the rate of " + name);
}

Status Netlink::remove(const std::string& name) {
  const auto index = index_of(name);
  if (!index) return index.error();
  ifinfomsg body = link_body();
  body.ifi_index = *index;
  Message message(RTM_DELLINK, 0, body);
  return ask(message.bytes(), "removing " + name);
}

}  // namespace forerun::monitor
