"""Tiresias as Pollux' simulator has it: two queues, in rounds of a minute. A job sinks to the second queue once it has
held 16 GPU hours; in each round jobs are walked in the order of the queues, and whatever fits runs."""

ROUND = 60
THRESHOLD = 16 * 3600
first, second = [], []  # numbers of jobs, in order of arrival and of sinking


def schedule(cluster):
    rounds, rest = divmod(cluster.now, ROUND)
    cluster.wake_at((rounds + 1) * ROUND)
    if rest > 1e-6:
        return
    jobs = {job.number: job for job in cluster.waiting + cluster.running}
    first[:] = [number for number in first if number in jobs]
    second[:] = [number for number in second if number in jobs]
    first.extend(sorted(set(jobs) - set(first) - set(second)))
    for number in list(first):
        if jobs[number].attained * jobs[number].gpus >= THRESHOLD:
            first.remove(number)
            second.append(number)
    left, chosen = sum(cluster.gpus.values()), []
    for job in (jobs[number] for number in first + second):
        if job.gpus <= left:
            left -= job.gpus
            chosen.append(job)
        elif job.type is not None:
            cluster.preempt(job)
    for job in chosen:
        if job.type is None:
            cluster.start(job)
