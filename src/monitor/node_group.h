// Processes that are nodes of a network: each in a network namespace of its own, joined by shaped links to one switch.
//
// The caller's process becomes the switch: it enters a new namespace and has one end of every link. A link's rate holds in
// both directions, and each direction has its own token bucket. Namespaces and links have no names in the file system: they
// live as long as the processes in them, and the processes die with the caller (PR_SET_PDEATHSIG), so nothing is left behind
// however it ends. Where the kernel has no bridge the switch routes between subnets instead.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace forerun::monitor {

struct NodeGroupOptions {
  std::vector<uint64_t> rates;  // bits a second of each node's link; 0: not limited
  std::vector<std::string>
      command;                // every node runs it; FORERUN_NODE, FORERUN_NODES and FORERUN_ADDRESSES tell it who it is
  std::vector<int> channels;  // a descriptor for each node, its number 3; closed in all other processes; may be empty
  bool routed = false;        // no bridge even where there is one
};

struct NodeGroup {
  std::string layout;  // "bridge" or "routed"
  std::vector<pid_t> pids;
  std::vector<std::string> addresses;
};

// Starts the nodes. The calling process must have one thread; it leaves its network namespace for good.
Result<NodeGroup> start_nodes(const NodeGroupOptions& options);

// Waits until all nodes have ended, or one has failed: then the others are killed. 0, or the exit code of the first failure
// (128 and the signal's number for one that was killed).
int wait_nodes(const NodeGroup& group);

// Ends this process, by SIGKILL, when its parent ends.
void die_with_parent(pid_t parent);

}  // namespace forerun::monitor
