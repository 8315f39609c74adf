"""Shortest predicted duration first; the first job that does not fit holds up all behind it. As the built-in `sjf`."""


def schedule(cluster):
    for job in sorted(cluster.waiting, key=lambda job: (job.fastest, job.number)):
        kind = cluster.fastest_free(job)
        if kind is None:
            return
        cluster.start(job, kind)
