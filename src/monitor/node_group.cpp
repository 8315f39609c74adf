#include "monitor/node_group.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "monitor/netlink.h"

namespace forerun::monitor {
namespace {

constexpr int kChannel = 3;       // the descriptor a node finds its channel at
constexpr int kNodeFailed = 111;  // a node that could not be set up
constexpr const char* kBridge = "switch0";
constexpr const char* kNodeLink = "eth0";

struct Start {
  pid_t pid = -1;
  int ready = -1;  // the node writes when it is in its namespace
  int go = -1;     // the switch writes when its end of the link is made
};

std::string port_name(size_t node) { return "port" + std::to_string(node); }

std::string node_address(size_t node, bool routed) {
  return routed ? "10.77." + std::to_string(node + 1) + ".2" : "10.77.0." + std::to_string(node + 2);
}

Status enter_namespace() {
  if (unshare(CLONE_NEWNET) == 0) return {};
  return Error{std::string("no new network namespace: ") + std::strerror(errno), "",
               errno == EPERM ? "run as root" : "this kernel may lack network namespaces"};
}

bool write_setting(const char* path, const std::string& text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  const bool written = file >= 0 && write(file, text.c_str(), text.size()) == static_cast<ssize_t>(text.size());
  if (file >= 0) close(file);
  return written;
}

Status allow_forwarding() {
  constexpr const char* kForward = "/proc/sys/net/ipv4/ip_forward";
  if (write_setting(kForward, "1")) return {};
  return Error{std::string("routing cannot be switched on: ") + std::strerror(errno), kForward, ""};
}

// TCP that fills a link and shares it evenly, whatever the machine prefers elsewhere: each namespace has its own settings.
// Windows of about 4 MiB keep the switch's queue short, so that senders feel at once that they share a port.
void set_up_tcp() {
  if (!write_setting("/proc/sys/net/ipv4/tcp_congestion_control", "cubic")) {
    write_setting("/proc/sys/net/ipv4/tcp_congestion_control", "reno");
  }
  write_setting("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 8388608");
}

// The node's end of its link: address, rate, route.
Status set_up_node(size_t node, uint64_t rate, bool routed) {
  auto netlink = Netlink::open();
  if (!netlink) return netlink.error();
  set_up_tcp();
  if (Status done = netlink->set_up("lo"); !done) return done;
  if (Status done = netlink->add_address(kNodeLink, node_address(node, routed), 24); !done) return done;
  if (Status done = netlink->set_up(kNodeLink); !done) return done;
  if (rate > 0) {
    if (Status done = netlink->limit_rate(kNodeLink, RateLimit::of(rate)); !done) return done;
  }
  return routed ? netlink->add_default_route("10.77." + std::to_string(node + 1) + ".1") : Status{};
}

// The switch's end.
Status set_up_port(Netlink& netlink, size_t node, pid_t pid, uint64_t rate, bool routed) {
  const std::string port = port_name(node);
  if (Status done = netlink.add_veth(port, kNodeLink, pid); !done) return done;
  if (Status done = routed ? netlink.add_address(port, "10.77." + std::to_string(node + 1) + ".1", 24)
                           : netlink.set_master(port, kBridge);
      !done) {
    return done;
  }
  if (Status done = netlink.set_up(port); !done) return done;
  return rate > 0 ? netlink.limit_rate(port, RateLimit::of(rate)) : Status{};
}

bool byte_from(int file) {
  char byte = 0;
  ssize_t got = 0;
  do {
    got = read(file, &byte, 1);
  } while (got < 0 && errno == EINTR);
  return got == 1;
}

[[noreturn]] void fail_node(size_t node, const std::string& problem) {
  std::fprintf(stderr, "node %zu: %s\n", node, problem.c_str());
  _exit(kNodeFailed);
}

// What a node does between fork and exec.
[[noreturn]] void become_node(size_t node, const NodeGroupOptions& options, bool routed, pid_t parent, int ready,
                              int go, const std::string& addresses) {
  die_with_parent(parent);
  if (const Status entered = enter_namespace(); !entered) fail_node(node, entered.error().message());
  if (write(ready, "r", 1) != 1 || !byte_from(go)) fail_node(node, "the switch is gone");
  if (const Status done = set_up_node(node, options.rates[node], routed); !done)
    fail_node(node, done.error().message());
  if (!options.channels.empty()) {
    const int own = options.channels[node];
    const int safe = fcntl(own, F_DUPFD, 64);  // dup2 may overwrite a sibling's channel, or find its own at 3 already
    for (const int channel : options.channels) close(channel);
    if (safe < 0 || dup2(safe, kChannel) < 0) fail_node(node, std::string("its channel: ") + std::strerror(errno));
    close(safe);
  }
  setenv("FORERUN_NODE", std::to_string(node).c_str(), 1);
  setenv("FORERUN_NODES", std::to_string(options.rates.size()).c_str(), 1);
  setenv("FORERUN_ADDRESSES", addresses.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : options.command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  fail_node(node, options.command[0] + ": " + std::strerror(errno));
}

Result<Start> fork_node(size_t node, const NodeGroupOptions& options, bool routed, const std::string& addresses) {
  int ready[2], go[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return Error{std::string("no pipe: ") + std::strerror(errno), "", ""};
  if (pipe2(go, O_CLOEXEC) != 0) return Error{std::string("no pipe: ") + std::strerror(errno), "", ""};
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return Error{std::string("no process: ") + std::strerror(errno), "", ""};
  if (pid == 0) {
    close(ready[0]);
    close(go[1]);
    become_node(node, options, routed, parent, ready[1], go[0], addresses);
  }
  close(ready[1]);
  close(go[0]);
  return Start{pid, ready[0], go[1]};
}

void kill_all(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) kill(pid, SIGKILL);
  for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
}

Status start_one(NodeGroup& group, Netlink& netlink, size_t node, const NodeGroupOptions& options, bool routed,
                 const std::string& addresses) {
  const auto start = fork_node(node, options, routed, addresses);
  if (!start) return start.error();
  group.pids.push_back(start->pid);
  Status done;
  if (!byte_from(start->ready)) {
    done = Error{"the node did not get a namespace", "node " + std::to_string(node), "its own message says why"};
  } else {
    done = set_up_port(netlink, node, start->pid, options.rates[node], routed);
  }
  if (done && write(start->go, "g", 1) != 1) done = Error{"the node is gone", "node " + std::to_string(node), ""};
  close(start->ready);
  close(start->go);
  return done;
}

}  // namespace

void die_with_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kNodeFailed);  // it ended before the line above
}

Result<NodeGroup> start_nodes(const NodeGroupOptions& options) {
  if (const Status entered = enter_namespace(); !entered) return entered.error();
  auto netlink = Netlink::open();
  if (!netlink) return netlink.error();
  if (const Status done = netlink->set_up("lo"); !done) return done.error();
  bool routed = options.routed;
  if (!routed) {
    if (const Status made = netlink->add_bridge(kBridge); !made) {
      routed = true;
    } else if (const Status up = netlink->set_up(kBridge); !up) {
      return up.error();
    }
  }
  if (routed) {
    if (const Status done = allow_forwarding(); !done) return done.error();
  }
  NodeGroup group;
  group.layout = routed ? "routed" : "bridge";
  std::string addresses;
  for (size_t node = 0; node < options.rates.size(); ++node) {
    group.addresses.push_back(node_address(node, routed));
    addresses += (node > 0 ? "," : "") + group.addresses.back();
  }
  for (size_t node = 0; node < options.rates.size(); ++node) {
    if (const Status done = start_one(group, *netlink, node, options, routed, addresses); !done) {
      kill_all(group.pids);
      return done.error();
    }
  }
  for (const int channel : options.channels) close(channel);
  return group;
}

int wait_nodes(const NodeGroup& group) {
  size_t left = group.pids.size();
  while (left > 0) {
    int status = 0;
    const pid_t ended = wait(&status);
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) return kNodeFailed;
    --left;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code != 0) {
      for (const pid_t pid : group.pids) {
        if (pid != ended) kill(pid, SIGKILL);
      }
      while (wait(nullptr) > 0 || errno == EINTR) {
      }
      return code;
    }
  }
  return 0;
}

}  // namespace forerun::monitor
