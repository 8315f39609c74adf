/* Shortest predicted duration first; the first job that does not fit holds up all behind it. As the built-in `sjf`.
 *     cc -shared -fPIC -I src/cluster/external -o shortest_first.so examples/policies/shortest_first.c
 */
#include <forerun_policy.h>
#include <stdlib.h>

static int shorter(const void* a, const void* b) {
  const forerun_job *x = *(const forerun_job* const*)a, *y = *(const forerun_job* const*)b;
  if (x->predicted_fastest != y->predicted_fastest) return x->predicted_fastest < y->predicted_fastest ? -1 : 1;
  return x->number < y->number ? -1 : 1;
}

uint32_t forerun_policy_abi(void) { return FORERUN_POLICY_ABI; }

void forerun_policy_schedule(forerun_cluster* cluster) {
  qsort(cluster->waiting, cluster->waiting_count, sizeof *cluster->waiting, shorter);
  for (size_t i = 0; i < cluster->waiting_count; ++i) {
    const int32_t type = cluster->fastest_free(cluster, cluster->waiting[i]);
    if (type < 0) return;
    cluster->start(cluster, cluster->waiting[i], (uint32_t)type, 0);
  }
}
