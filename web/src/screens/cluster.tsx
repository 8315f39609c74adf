// Cluster: jobs under policies, asked in the background, with a Gantt chart and curves of completion.
import {useEffect, useState} from "preact/hooks";
import {ScheduleView, type Outcome} from "../views/schedule";
import type {Job, Problem, Words} from "./api";
import {FaultNote, problemOf} from "./asking";
import {pairsOf, SelectControl, TextControl, type ScreenProps} from "./controls";
import {Drop} from "./drop";
import {percent} from "../format";

const kStart = {synthetic: "jobs=200,gpus=16,seed=1", gpus: "16", policies: "fifo,sjf,srtf", predictor: "perfect"};

interface Found {
  outcomes: Outcome[];
  jobs?: string;         // CSV
  unlisted?: Problem;  // why they are not listed
}

export function Cluster(props: ScreenProps) {
  const settings = {...kStart, ...props.settings};
  const upload = /^[0-9a-f]{64}$/.test(props.settings.file ?? "") ? props.settings.file ?? "" : "";
  const set = (name: string) => (value: string) => props.change({...settings, [name]: value});
  const [found, setFound] = useState<Found | null>(null);
  const [fault, setFault] = useState<Problem | null>(null);
  const [state, setState] = useState("");
  const words: Words = {policies: settings.policies.split(",").map((one) => one.trim()).filter((one) => one !== ""), predictor: settings.predictor};
  if (upload) words.file = `upload:${upload}`;
  else words.synthetic = settings.synthetic;
  if (/^\d+$/.test(settings.gpus)) words.gpu_count = Number(settings.gpus);
  else words.gpus = Object.fromEntries(Object.entries(pairsOf(settings.gpus)).map(([type, count]) => [type, Number(count)]));
  const key = JSON.stringify(words);
  useEffect(() => {
    const control = new AbortController();
    const tell = (job: Job) => setState(job.progress && job.progress.total > 0 ? `${job.progress.what}: ${percent(job.progress.done / job.progress.total)}` : job.state);
    setFault(null);
    setState("asked");
    // The list of very many jobs is larger than the server hands over: the figures stand without it.
    const listed = props.api.run("jobs", words, () => undefined, control.signal).then((jobs) => ({jobs: (jobs as {csv: string}).csv}), (error) => ({unlisted: problemOf(error)}));
    Promise.all([props.api.run("schedule", words, tell, control.signal), listed]).then(
      ([answer, list]) => {
        if (control.signal.aborted) return;
        setFound({outcomes: (Array.isArray(answer) ? answer : [answer]) as Outcome[], ...list});
        setState("");
      },
      (error) => {
        if (control.signal.aborted) return;
        setFault(problemOf(error));
        setState("");
      });
    return () => control.abort();
  }, [key]);
  return (
    <>
      <form class="controls" aria-label="Settings" onSubmit={(event) => event.preventDefault()}>
        {upload ? <label class="control"><span>Jobs</span><button type="button" class="quiet" onClick={() => props.change({...settings, file: ""})}>An uploaded file; use made-up jobs</button></label>
          : <TextControl label="Made-up jobs" value={settings.synthetic} onChange={set("synthetic")} />}
        <TextControl label="GPUs" value={settings.gpus} placeholder="16, or a100=4, v100=8" onChange={set("gpus")} />
        <TextControl label="Policies" value={settings.policies} onChange={set("policies")} />
        <SelectControl label="What the scheduler knows" value={settings.predictor} options={[["perfect", "true durations"], ["none", "nothing"], ["error:8", "durations 8 % off"], ["error:20", "durations 20 % off"], ["error:50", "durations 50 % off"]]} onChange={set("predictor")} />
      </form>
      <Drop api={props.api} label="Choose a table of jobs" note="CSV with id, submit, duration, gpus; docs/jobs.md describes it." onDone={(done) => props.change({...settings, file: done[0]?.id ?? ""})} />
      <FaultNote problem={fault} />
      <p class="note" role="status">{state && `Simulating: ${state}`}</p>
      {found && !fault && <div class={state ? "answer busy" : "answer"}><FaultNote problem={found.unlisted ?? null} /><ScheduleView answers={found.outcomes} jobsCsv={found.jobs} /></div>}
    </>
  );
}
