// parallel_for: the tasks 0 ... count-1 on several threads, with the outcome of one.
//
// Threads that cannot be made (a limit on processes or memory) are done without: the calling thread is always one of
// them. Tasks are started in order. Where one throws, no further ones are started, and once all threads have ended the
// exception of the first task that threw is thrown here: the same whatever the threads did. A task that runs out of memory
// (std::bad_alloc) beside others gives up its thread and runs again when the others are done, by itself: only then does it
// count. So a task must bear being run again, and it hands its result over by index.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>

#include "base/work_control.h"

namespace forerun {

// Makes a thread that runs this; throws as std::thread does where there can be none. Tests put their own in its place.
using ThreadMaker = std::function<std::thread(const std::function<void()>&)>;

// `threads` 0: as many as the machine has. At most `count` are made, the calling one among them.
void parallel_for(size_t count, size_t threads, const std::function<void(size_t)>& task, const ThreadMaker& make = {});

// The same for work that can be stopped, each task counted as one step of its progress. Once it does not go on no further
// task is started, and what it says is the answer.
Status parallel_for(size_t count, size_t threads, Work& work, const std::function<void(size_t)>& task);

}  // namespace forerun
