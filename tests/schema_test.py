"""Holds what the verbs print with --json to the schemas in docs/schema, so that neither drifts from the other.

Runs every verb's JSON form on small inputs and validates each answer. It fails where a field is printed that the
schema does not have, where a required one is missing, where a schema is used by no case, and where a field of a schema
is printed by no case (but for RARE). Needs Debian's python3-jsonschema; without it the test is skipped (exit code 77).

usage: schema_test.py PROGRAM SOURCE-DIR | schema_test.py --self-check
"""

import fnmatch
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("skipped: the module jsonschema is missing; install python3-jsonschema")
    sys.exit(77)

RANKS = "{tmp}/rank0.json {tmp}/rank1.json"
ET = "tests/corpus/execution_trace"
TRACES = "data/h200/whatif_traces"
CLUSTER = "--gpus a100=4,v100=8"
MACHINE = "tests/corpus/machine_file/h200.json"

# Schema, arguments after the program's name, exit code. {tmp} is a folder of inputs that write_inputs makes.
CASES = [
    ("predict", "predict resnet18 --batch 8 --json", 0),
    ("predict", "predict resnet18 --batch 8 --compile --json", 0),
    ("predict", "predict lstm_ptb_medium --compile --json", 0),
    ("predict", "predict gpt2_small --batch 2 --precision amp_bf16 --compile=max-autotune --samples 1M --price h200=3 --json", 0),
    ("fit", "fit resnet18 --gpu t4 --brief --compile --json", 0),
    ("compare", "compare resnet18 --gpus h200,t4 --compile --json", 0),
    ("sweep", "sweep resnet18 --over compile=none,reduce-overhead --json", 0),
    ("predict", "predict resnet18 --batch 8 --samples 1M --price h200=3 --json", 0),
    ("predict", "predict llama2_7b --gpu t4 --json", 3),
    ("predict", "predict bert_base --gpu a100_80gb --zero 3 --gpus 4 --json", 0),
    ("predict", "predict examples/onnx/small_cnn.onnx --json", 0),
    ("predict", "predict examples/onnx/transformer_block.onnx --batch 4 --set length=32 --json", 0),
    ("predict", "predict data/captures/generic.jsonl.zst --json", 0),
    ("predict", "predict tests/data/run1.jsonl.zst --json", 0),
    ("predict", "predict tests/corpus/run_record/parametric.jsonl --batch 5 --json", 0),
    ("predict", "predict tests/corpus/run_record/small_run2.jsonl --json", 0),
    ("predict", "predict {tmp}/unknown_op.jsonl --json", 0),
    ("fit", "fit resnet18 --gpu t4 --json", 0),
    ("fit", "fit gpt2_small --gpu a100_80gb --axis length --batch 1 --brief --json", 0),
    ("fit", "fit llama2_7b --gpu t4 --json", 3),
    ("fit", "fit resnet18 --gpu t4 --brief --epochs 2 --dataset-size 1M --price t4=0.5 --json", 0),
    ("compare", "compare gpt2_small --precision amp_bf16 --gpus h200,a100_80gb,v100,t4 --price h200=3 --iterations 1000 --json", 0),
    ("compare", "compare llama2_7b --gpus t4,l4 --json", 3),
    ("compare", "compare resnet18 --gpus h200,t4,l4 --prices examples/prices.toml --epochs 2 --dataset-size 1M --deadline 3h --budget 9 --by cost --json", 0),
    ("compare", "compare tests/corpus/run_record/parametric.jsonl --gpus h200,t4 --json", 0),
    ("sweep", "sweep resnet18 --over batch=1,8 --json", 0),
    ("sweep", "sweep resnet18 --over batch=1,8 --samples 1M --price h200=2 --json", 0),
    ("sweep", "sweep gpt2_small --over gpu=h200,t4 --over length=64,100000 --json", None),
    ("sweep", "sweep tests/corpus/run_record/parametric.jsonl --over batch=3,5 --json", 0),
    ("check", "check {tmp}/forerun.toml --update --json", 0),
    ("check", "check {tmp}/forerun.toml --json", 0),
    ("check", "check {tmp}/forerun.toml --lock {tmp}/none.lock --json", 3),
    ("zoo", "zoo --json", 0),
    ("zoo", "zoo resnet50 --json", 0),
    ("zoo.check", "zoo check tests/data/run1.jsonl.zst --json", None),
    ("zoo.check", "zoo check data/captures/zoo.jsonl.zst --json", None),
    ("devices", "devices --json", 0),
    ("devices.links", "devices --links --json", 0),
    ("data.summary", "data summary tests/corpus/run_record tests/data/run1.jsonl.zst {tmp}/set --json", 1),
    ("data.check", "data check tests/corpus/run_record {tmp}/cut.jsonl.zst --json", 1),
    ("data.check", "data check data/captures --json", 0),
    ("data.list", "data list tests/corpus/run_record tests/data/run1.jsonl.zst data/captures --json", 1),
    ("data.noise", "data noise tests/data/run1.jsonl.zst {tmp}/again.jsonl --json", 0),
    ("data.merge", "data merge {tmp}/merged.jsonl data/captures/zoo.jsonl.zst data/captures/zoo.jsonl.zst --json", 0),
    ("memory.replay", "memory replay tests/data/run1.jsonl.zst tests/corpus/run_record --json", None),
    ("schedule", f"schedule examples/jobs.csv {CLUSTER} --policy sjf --json", 0),
    ("schedule", f"schedule examples/jobs.csv {CLUSTER} --compare fifo sjf edf --json", 0),
    ("schedule", f"schedule examples/jobs.csv {CLUSTER} --policy srtf --predictor error:50 --repeat 3 --json", 0),
    ("schedule", f"schedule examples/jobs.csv {CLUSTER} --policy sjf --predictor hybrid --json", 0),
    ("schedule", f"schedule examples/jobs.csv {CLUSTER} --compare fifo sjf --by user group size --json", 0),
    ("schedule", f"schedule --synthetic jobs=10,gpus=8 --policy fifo --machine {MACHINE} --json", 0),
    ("schedule", "schedule {tmp}/odd_jobs.csv --gpus 4 --policy fifo --lenient --json", 0),
    ("slurm.limits", "slurm limits {tmp}/jobs.csv --json", 0),
    ("slurm.limits", "slurm ask 'model=resnet50 batch=64 iterations=100' --json", 0),
    ("slurm.limits", f"slurm ask 'model=resnet50 batch=64 iterations=100' --machine {MACHINE} --json", 0),
    ("slurm.replay", "slurm replay {tmp}/odd_jobs.csv --speed 1000 --gpus 4 --policy fifo --json", None),
    ("trace", "trace tests/corpus/kineto/small.json --json", 0),
    ("trace", f"trace {RANKS} --json", 0),
    ("trace", f"trace {TRACES}/vgg19.base.trace.json.zst --top 1000 --json", 0),
    ("trace", f"trace {TRACES}/gnmt.base.trace.json.zst --no-path --json", 0),
    ("trace.compare", f"trace {TRACES}/vgg19.base.trace.json.zst --compare {TRACES}/gnmt.base.trace.json.zst --json", 0),
    ("trace.execution", f"trace {ET}/flat.json {ET}/nested.json {ET}/chakra.et --json", 0),
    ("trace.execution", f"trace {ET}/chakra_cut.et {ET}/chakra_broken_node.et --partial --json", 0),
    ("replay", f"replay {TRACES}/vgg19.base.trace.json.zst --json", 0),
    ("replay", f"replay {RANKS} --json", 0),
    ("replay", f"replay {TRACES}/vgg19.base.trace.json.zst --own-lags --json", 0),
    ("whatif", f"whatif {TRACES}/vgg19.base.trace.json.zst --apply amp --json", 0),
    ("whatif", "whatif resnet18 --all --json", 0),
    ("whatif.sweep", "whatif resnet18 --apply ddp --apply p3 --each --sweep workers=2,4 --json", 0),
    ("scale", "scale resnet50 --gpus 1,8 --json", 0),
    ("scale", "scale resnet50 --gpus 8 --samples 1M --json", 0),
    ("scale", "scale resnet50 --gpu h200=8,t4=8 --network h200=8xndr,t4=25gbe --batches by-speed --json", 0),
    ("scale", "scale llama2_7b --gpu t4 --gpus 2 --json", 3),
    ("scale", "scale gpt2_small --gpus 8 --global-batch 64 --search --json", 0),
    ("scale", "scale gpt2_small --gpus 8 --stack megatron --json", 0),
    ("scale", "scale gpt3_175b --gpus 8 --global-batch 8 --search --json", 3),
    ("scale", "scale gpt3_175b --gpu h100 --gpus 4096 --strategy tp=8,pp=16 --tokens 1T --mttf 1 --json", 0),
    ("scale", "scale gpt2_small --gpus 2 --micro-batch 2 --compile --json", 0),
    ("scale", "scale gpt2_small --gpus 8 --global-batch 64 --search --explain dp --tokens 1B --mttf 9000 --json", 0),
    ("scale", "scale Mixtral-8x7B-v0.1 --set layers=2,length=512 --gpus 8 --strategy ep=4,cp=2 --json", 0),
    ("scale.testbed", "scale resnet50 --testbed P1w2-10G --micro-batch 32 --json", 0),
    ("scale.testbed", "scale resnet18 --testbed P1w2-10G --mode async --own-gpus --json", 0),
    ("scale.testbed", f"scale resnet18 --testbed AR4-10G --machine {MACHINE} --json", 0),
    ("store.list", "store list {tmp}/runs.db --limit 1 --json", 0),
    ("store.list", "store list {tmp}/runs.db --kind nothing --json", 0),
    ("store.show", "store show {tmp}/runs.db last --json", 0),
    ("store.info", "store info {tmp}/runs.db --json", 0),
    ("monitor", "monitor --seconds 0.3 --json", 0),
    ("monitor", "monitor --json -- true", 0),
]

# Fields that no input here brings about: they need a GPU, a fault in the middle of a run, or rows with just that fault.
# What learned predictors answer, where the build has them.
LEARNED_CASES = [
    ("predict", "predict resnet18 --batch 8 --with gbdt,ets --json", 0),
    ("predict", "predict resnet18 --batch 8 --gpu l4 --with neusight,habitat --json", 0),
    ("scale.testbed", "scale resnet18 --testbed P1w2-10G --micro-batch 16 --with driple --json", 0),
]
RARE = ["monitor:series.gpu*", "monitor:series.memory", "monitor:metrics.gpu*", "monitor:metrics.memory*",
        "monitor:gpu_missing", "slurm.replay:fault", "slurm.replay:cancelled", "schedule:rows_left_out.*",
        "predict:compile"]  # of predictions within other answers; `predict --compile` tells the eager one, with `compiled` in it

SLURM = """#!/usr/bin/env python3
# Stands in for Slurm's commands: a job is over as soon as it is submitted.
import json, os, sys, time
path, name = os.path.join(os.path.dirname(__file__), "jobs.jsonl"), os.path.basename(sys.argv[0])
jobs = [json.loads(line) for line in open(path)] if os.path.exists(path) else []
if name == "sbatch":
    told = dict(word[2:].split("=", 1) for word in sys.argv[1:] if "=" in word)
    now = int(time.time())
    job = {"job_id": len(jobs) + 1, "job_state": "COMPLETED", "name": told["job-name"], "comment": told["comment"],
           "user_id": os.getuid(), "submit_time": now, "start_time": now, "end_time": now + 1}
    open(path, "a").write(json.dumps(job) + "\\n")
    print(job["job_id"])
elif name == "squeue":
    print(json.dumps({"errors": [], "jobs": jobs}))
"""


def write_inputs(tmp, source, program):
    """Inputs that the tree does not have as such."""
    small = (source / "tests/corpus/kineto/small.json").read_text()
    for rank in (0, 1):
        (tmp / f"rank{rank}.json").write_text(small.replace('"rank": 1', f'"rank": {rank}'))
    packed = (source / "data/captures/generic.jsonl.zst").read_bytes()
    (tmp / "cut.jsonl.zst").write_bytes(packed[:len(packed) // 2])
    subprocess.run([program, "data", "merge", tmp / "runs.jsonl", source / "tests/data/run1.jsonl.zst"],
                   stdout=subprocess.DEVNULL, check=True)
    with open(tmp / "runs.jsonl") as runs, open(tmp / "again.jsonl", "w") as again:
        for line in runs:
            record = json.loads(line)
            record["id"] = "again/" + record["id"]
            again.write(json.dumps(record) + "\n")
    first = (source / "tests/corpus/run_record/small_run2.jsonl").read_text().splitlines()[0]
    (tmp / "unknown_op.jsonl").write_text(first.replace("aten.mm.default", "mine.mm.default") + "\n")
    (tmp / "set").mkdir()
    (tmp / "set" / "runs.jsonl").write_text(first + "\n")
    (tmp / "set" / "samples.jsonl").write_text((source / "tests/corpus/run_record/op_samples.jsonl").read_text())
    (tmp / "set" / "split.json").write_text(json.dumps({"train": ["mlp"], "test": [], "ood": []}))
    (tmp / "jobs.csv").write_text("id,model,batch,iterations,gpus\na,resnet50,64,1000,1\nb,bert_base,8,500,4\n")
    (tmp / "odd_jobs.csv").write_text("id,submit,duration,gpus,colour\na,0,100,1,red\nb,10,50,2,blue\n")
    (tmp / "forerun.toml").write_text('[guard.small]\nmodel = "resnet18"\nbatch = 4\nfits = true\nslower_than_baseline = "5%"\n'
                                      'iteration_ms_at_most = 1000\n')
    answers = subprocess.run([program, "predict", "resnet18", "--batch", "8", "--json"], stdout=subprocess.PIPE, check=True).stdout
    for extra in ("git=4f2a", "best"):
        subprocess.run([program, "store", "add", tmp / "runs.db", "--tag", extra], input=answers, stdout=subprocess.DEVNULL, check=True)
    subprocess.run([program, "store", "measure", tmp / "runs.db", "last", "--iter-ms", "9", "--machine", "lab"], check=True)
    (tmp / "bin").mkdir()
    for name in ("sbatch", "squeue", "scancel"):
        (tmp / "bin" / name).write_text(SLURM)
        (tmp / "bin" / name).chmod(0o755)


def validators_of(schemas):
    """A validator for each schema; each can refer to the others by their file names."""
    try:
        from referencing import Registry
        from referencing.jsonschema import DRAFT202012
        files = Registry().with_resources(
            [(stem + ".json", DRAFT202012.create_resource(schema)) for stem, schema in schemas.items()])
        return {stem: Draft202012Validator(schema, registry=files) for stem, schema in schemas.items()}
    except ImportError:
        from jsonschema import RefResolver
        store = {stem + ".json": schema for stem, schema in schemas.items()}
        return {stem: Draft202012Validator(schema, resolver=RefResolver(stem + ".json", schema, store=store))
                for stem, schema in schemas.items()}


def answers_in(text):
    """The answers that a verb printed: one object a line, or one text of JSON that may be a list."""
    lines = text.splitlines()
    if lines and lines[0] in ("{", "["):
        whole = json.loads(text)
        return whole if isinstance(whole, list) else [whole]
    return [json.loads(line) for line in lines]


def problems_of(answer, validator):
    """What is wrong with an answer, as sentences."""
    problems = []
    if next(iter(answer), None) != "schema":
        problems.append("the first field is not schema")
    for error in validator.iter_errors(answer):
        inner = sorted(error.context or [], key=lambda e: len(list(e.absolute_path)))
        texts = [error.message[:300]] + [e.message[:300] for e in inner[:6]]
        problems.append("/".join(map(str, error.absolute_path)) + ": " + "; ".join(texts))
    return problems


def fields_of_answer(value, path=()):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield path + (name,)
            yield from fields_of_answer(inner, path + (name,))
    elif isinstance(value, list):
        for inner in value:
            yield from fields_of_answer(inner, path)


def fields_of_schema(schema, path=()):
    """Every field that a schema names itself; those of files it refers to are theirs."""
    for name, inner in schema.get("properties", {}).items():
        yield path + (name,)
        yield from fields_of_schema(inner, path + (name,))
    for inner in [schema["items"]] if "items" in schema else schema.get("oneOf", []):
        yield from fields_of_schema(inner, path)


def run(command, program, source, tmp):
    """What a case printed, and its exit code."""
    words = [word.replace("{tmp}", str(tmp)) for word in shlex.split(command)]
    environment = dict(os.environ, PATH=f"{tmp}/bin:{os.environ['PATH']}")
    done = subprocess.run([str(program), *words], cwd=source, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    return done.stdout, done.returncode, done.stderr


def failures_of(cases, schemas, run_case):
    """Runs the cases; all that is wrong, as lines."""
    failures, seen = [], {stem: set() for stem in schemas}
    for stem, schema in schemas.items():
        Draft202012Validator.check_schema(schema)
    validators = validators_of(schemas)
    for stem, command, code in cases:
        printed, exit_code, told = run_case(command)
        if stem not in schemas:
            failures.append(f"{command}: there is no docs/schema/{stem}.json")
            continue
        if exit_code not in ((0, 1, 3) if code is None else (code,)):
            failures.append(f"{command}: exit code {exit_code}: {told.strip()[-300:]}")
        answers = answers_in(printed)
        if not answers:
            failures.append(f"{command}: printed nothing: {told.strip()[-300:]}")
        for answer in answers:
            seen[stem].update(fields_of_answer(answer))
            failures += [f"{command}: {stem}: {problem}" for problem in problems_of(answer, validators[stem])][:5]
    for stem, schema in schemas.items():
        if not seen[stem]:
            failures.append(f"docs/schema/{stem}.json is used by no case")
            continue
        for field in sorted(set(fields_of_schema(schema)) - seen[stem]):
            name = f"{stem}:{'.'.join(field)}"
            if not any(fnmatch.fnmatch(name, rare) for rare in RARE):
                failures.append(f"{name} is printed by no case")
    return failures


def self_check():
    """Shows on a small schema that the test can pass and fail."""
    schema = {"type": "object", "properties": {"schema": {"const": "a/1"}, "n": {"type": "integer"}},
              "required": ["schema", "n"], "additionalProperties": False}

    def failures(text, schemas=None, code=0):
        return failures_of([("a", "a --json", 0)], schemas or {"a": schema}, lambda command: (text, code, ""))
    assert failures('{"schema": "a/1", "n": 1}\n{"schema": "a/1", "n": 2}') == []
    assert failures('[\n {"schema": "a/1", "n": 1}\n]') == []
    assert failures('{"schema": "a/1", "n": 1, "more": 2}'), "a planted field"
    assert failures('{"schema": "a/1"}'), "a missing field"
    assert failures('{"schema": "a/2", "n": 1}'), "another version"
    assert failures('{"schema": "a/1", "n": "1"}'), "another type"
    assert failures('{"n": 1, "schema": "a/1"}'), "another field first"
    assert failures(""), "no answer"
    assert failures('{"schema": "a/1", "n": 1}', code=2), "another exit code"
    assert failures('{"schema": "a/1", "n": 1}', {"a": schema, "b": schema}), "a schema that no case uses"
    further = dict(schema, properties=dict(schema["properties"], more={"type": "integer"}))
    assert failures('{"schema": "a/1", "n": 1}', {"a": further}), "a field that no case prints"
    refers = {"type": "object", "properties": {"schema": {"const": "b/1"}, "a": {"$ref": "a.json"}}}
    both = [("a", "a", 0), ("b", "b", 0)]
    whole, inner = '{"schema": "b/1", "a": {"schema": "a/1", "n": 1}}', '{"schema": "a/1", "n": 1}'
    files = {"a": dict(schema, **{"$id": "a.json"}), "b": dict(refers, **{"$id": "b.json"})}
    assert failures_of(both, files, lambda command: (whole if command == "b" else inner, 0, "")) == []
    broken = whole.replace('"n": 1', '"m": 1')
    assert failures_of(both, files, lambda command: (broken if command == "b" else inner, 0, ""))
    print("self-check passed")


def kept_failures(source):
    """Suites of `eval` take minutes and data of others: what is kept of them is held to docs/schema/eval."""
    failures = []
    for path in sorted((source / "docs/schema/eval").glob("*.json")):
        kept = source / "data/evaluations" / path.name
        validator = Draft202012Validator(json.loads(path.read_text()))
        failures += [f"{kept.name}: {error.message}" for error in validator.iter_errors(json.loads(kept.read_text()))]
    return failures


def main(program, source):
    program, source = Path(program).resolve(), Path(source).resolve()
    schemas = {path.stem: json.loads(path.read_text()) for path in sorted((source / "docs/schema").glob("*.json"))}
    with tempfile.TemporaryDirectory() as folder:
        tmp = Path(folder)
        write_inputs(tmp, source, program)
        cases = CASES + LEARNED_CASES if run(LEARNED_CASES[0][1], program, source, tmp)[1] == 0 else CASES
        if cases is CASES:
            RARE.append("predict:with*")  # forerun-lab is not built, or without LibTorch
        failures = failures_of(cases, schemas, lambda command: run(command, program, source, tmp))
    failures += kept_failures(source)
    print("\n".join(failures + [f"{len(cases)} cases, {len(schemas)} schemas, {len(failures)} failures"]))
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-check"]:
        self_check()
    elif len(sys.argv) == 3:
        sys.exit(main(sys.argv[1], sys.argv[2]))
    else:
        sys.exit(__doc__)
