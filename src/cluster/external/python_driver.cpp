// What python3 runs for a policy that is a Python file: keeps the picture of the cluster that docs/cluster.md describes,
// calls the file's schedule(cluster), and says what it decided (policy_process.h). Needs the standard library alone.
namespace forerun::cluster {

extern const char* const kPythonDriver;
const char* const kPythonDriver = R"python(
import importlib.util, os, sys, traceback

NEVER = float("inf")


class Job:
    """A job as its user stated it, and what is predicted of it; times are seconds."""
    __slots__ = ("number", "id", "user", "group", "model", "gpus", "least_gpus", "most_gpus", "priority", "submit",
                 "deadline", "memory", "predicted", "fastest", "type", "held", "since", "_before", "_cluster")

    @property
    def attained(self):
        return self._before + (self._cluster.now - self.since if self.type is not None else 0)

    def __repr__(self):
        return f"job {self.id}"


class Cluster:
    def __init__(self):
        self.now, self.types, self.gpus, self.free = 0.0, [], {}, {}
        self._present, self._answer = {}, []

    @property
    def waiting(self):
        return sorted((job for job in self._present.values() if job.type is None), key=lambda job: job.number)

    @property
    def running(self):
        return sorted((job for job in self._present.values() if job.type is not None), key=lambda job: job.number)

    def fastest_free(self, job):
        best = None
        for kind, seconds in job.predicted.items():
            if job.gpus <= self.free[kind] and (best is None or seconds < job.predicted[best]):
                best = kind
        return best

    def start(self, job, type=None, gpus=None):
        kind = self.fastest_free(job) if type is None else type
        if kind not in self.gpus:
            raise ValueError(f"{job!r} cannot start on {kind!r} now; the types are {', '.join(self.types)}")
        self._answer.append(f"start\t{job.number}\t{self.types.index(kind)}\t{0 if gpus is None else int(gpus)}\n")
        if job.type is None:
            job.type, job.held, job.since = kind, gpus or job.gpus, self.now
            self.free[kind] -= job.held

    def preempt(self, job):
        self._answer.append(f"preempt\t{job.number}\n")
        if job.type is not None:
            self.free[job.type] += job.held
            self._release(job, self.now)

    def wake_at(self, seconds):
        self._answer.append(f"wake\t{round(seconds * 1e9)}\n")

    def _release(self, job, when):
        job._before += when - job.since
        job.type, job.held = None, 0

    def _take(self, words):
        verb = words[0]
        if verb == "cluster":
            self.types = words[1::2]
            self.gpus = dict(zip(self.types, map(int, words[2::2])))
        elif verb == "job":
            self._add(words)
        elif verb == "finished":
            del self._present[int(words[1])]
        elif verb == "stopped":
            self._release(self._present[int(words[1])], int(words[2]) / 1e9)
        elif verb == "schedule":
            self.now = int(words[1]) / 1e9
            self.free = dict(zip(self.types, map(int, words[2:])))
            self._answer = []
            return True
        return False

    def _add(self, words):
        job = Job()
        job.number, job.gpus, job.least_gpus, job.most_gpus, job.priority = map(int, words[1:6])
        job.submit = int(words[6]) / 1e9
        job.deadline = NEVER if words[7] == "-1" else int(words[7]) / 1e9
        job.memory = int(words[8])
        job.id, job.user, job.group, job.model = words[9:13]
        times = zip(self.types, words[13:])
        job.predicted = {kind: int(time) / 1e9 for kind, time in times if time != "-1"}
        job.fastest = min(job.predicted.values(), default=NEVER)
        job.type, job.held, job.since, job._before, job._cluster = None, 0, 0.0, 0.0, self
        self._present[job.number] = job


def where(error, file):
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    place = f"{file}:{frames[-1].lineno}: " if frames else f"{file}: "
    return place + " ".join(f"{type(error).__name__}: {error}".split())


def main(file):
    lines, out = os.fdopen(3, "rb", closefd=False), os.fdopen(3, "wb", closefd=False)

    def say(text):
        out.write(text.encode("utf-8", "replace"))
        out.flush()

    try:
        spec = importlib.util.spec_from_file_location("forerun_policy", file)
        module = importlib.util.module_from_spec(spec)
        sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
        sys.dont_write_bytecode = True
        spec.loader.exec_module(module)
        if not callable(getattr(module, "schedule", None)):
            raise AttributeError("it does not define schedule(cluster)")
        cluster = Cluster()
        for line in lines:
            if cluster._take(line.decode("utf-8", "replace").rstrip("\n").split("\t")):
                module.schedule(cluster)
                say("".join(cluster._answer) + "done\n")
    except Exception as error:
        say(f"fault\t{where(error, file)}\n")


main(sys.argv[1])
)python";

}  // namespace forerun::cluster
