/* A scheduling policy as a shared library: `forerun schedule jobs.csv --gpus 8 --policy ./mine.so`.
 *
 *     cc -shared -fPIC -o mine.so mine.c
 *
 * The library defines forerun_policy_abi() and forerun_policy_schedule(). The latter is called once for every instant at
 * which something happened: jobs ended, GPUs failed or came back, jobs were submitted, or a time asked for has come. It
 * sees what a scheduler could know (what users stated, predicted durations, the past) and says which waiting jobs start and
 * which running ones give way. A job left waiting is offered again at the next instant.
 *
 * A library runs in a process of its own, one for each simulation, and may keep what it likes in variables. What it asks for
 * is checked: a job that is not waiting, a type that it cannot run on, more GPUs than are free end the simulation with a
 * message, as do a crash, an exit and no answer within the time limit. What it prints goes to standard error.
 *
 * Times are nanoseconds from the first submission. Everything that a pointer here leads to belongs to the caller; jobs keep
 * their address until they have ended. This header is C99 and C++. Later versions add fields at the ends of structures and
 * raise FORERUN_POLICY_ABI; a library of this version goes on working.
 */
#ifndef FORERUN_POLICY_H
#define FORERUN_POLICY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FORERUN_POLICY_ABI 1
#define FORERUN_NEVER INT64_MAX /* a deadline that there is not; a duration on a type that the job cannot run on */

typedef struct forerun_job {
  uint32_t number;                       /* from 0, in order of submission */
  int32_t gpus;                          /* of its gang, all of one type */
  int32_t least_gpus, most_gpus;         /* an elastic job runs with as many; 0 and 0: it is not elastic */
  int32_t priority;                      /* larger should go first */
  int64_t submit, deadline;              /* deadline: FORERUN_NEVER where there is none */
  int64_t memory;                        /* bytes that a GPU must have; 0: not stated */
  const int64_t* predicted;              /* by type: its whole duration with `gpus` GPUs */
  int64_t predicted_fastest;             /* the least of them */
  const char *id, *user, *group, *model; /* "" where not stated */
  int64_t attained;                      /* how long it has held GPUs so far */
  int32_t type;                          /* that it runs on; -1: it waits */
  int32_t held;                          /* GPUs, while it runs */
  int64_t since;                         /* when it got them, while it runs */
} forerun_job;

typedef struct forerun_cluster forerun_cluster;
struct forerun_cluster {
  int64_t now;
  uint32_t types;
  const char* const* type_names;
  const int32_t* gpus;         /* by type: all that there are */
  const int32_t* free;         /* by type, as start() and preempt() leave them */
  const forerun_job** waiting; /* in order of submission, when the call began; may be sorted in place */
  size_t waiting_count;
  const forerun_job** running; /* likewise, in order of their numbers */
  size_t running_count;

  /* Gives a waiting job its GPUs on a type; gpus: 0 for as many as it states, else an elastic job's choice. */
  void (*start)(forerun_cluster*, const forerun_job*, uint32_t type, int32_t gpus);
  /* Takes them away from a running one, which waits again and keeps its progress. */
  void (*preempt)(forerun_cluster*, const forerun_job*);
  /* Asks to be called then at the latest; holds until the next call. */
  void (*wake_at)(forerun_cluster*, int64_t time);
  /* Of the types that have the job's gang free now the one it is predicted to run fastest on, the first of equals; -1: none. */
  int32_t (*fastest_free)(const forerun_cluster*, const forerun_job*);
};

/* What the library defines. */
uint32_t forerun_policy_abi(void); /* { return FORERUN_POLICY_ABI; } */
void forerun_policy_schedule(forerun_cluster* cluster);

#ifdef __cplusplus
}
#endif

#endif /* FORERUN_POLICY_H */
