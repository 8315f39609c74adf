// Trace: profiler traces, dropped, and where their time went; two runs side by side; the timeline asks for more detail as one zooms in.
import {useEffect, useRef, useState} from "preact/hooks";
import {TimelineChart, TraceCompareView, TraceView, type TraceAnswer, type TraceCompare, type TraceTimeline} from "../views/trace";
import type {Api, Problem, Upload} from "./api";
import {Answered, FaultNote, problemOf, useAsk} from "./asking";
import {SelectControl, type ScreenProps} from "./controls";
import {Drop} from "./drop";
import {contentLink, perfettoLink} from "./perfetto";
import {linkTo} from "./place";

const kPixels = 2000;

function ServedTimeline({api, upload, title, onReady}: {api: Api; upload: string; title: string; onReady?: () => void}) {
  const [timeline, setTimeline] = useState<TraceTimeline | null>(null);
  const [fault, setFault] = useState<Problem | null>(null);
  const timer = useRef(0);
  const asked = useRef("");
  const load = (from: number, to: number) => {
    const range = to > from ? `&from=${Math.floor(from)}&to=${Math.ceil(to)}` : "";
    const question = `/timeline/${upload}?px=${kPixels}${range}`;
    if (question === asked.current) return;
    asked.current = question;
    api.get(question).then((answer) => {
      if (asked.current !== question) return;
      setTimeline(answer as TraceTimeline);
      setFault(null);
      onReady?.();
    }, (error) => {
      if (asked.current !== question) return;
      setFault(problemOf(error));
      onReady?.();
    });
  };
  useEffect(() => {
    setTimeline(null);
    load(0, 0);
    return () => clearTimeout(timer.current);
  }, [upload]);
  if (!timeline) return fault ? <FaultNote problem={fault} /> : <p class="note">Drawing the timeline ...</p>;
  return <TimelineChart title={title} timeline={timeline} onView={(from, to) => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => load(from, to), 160);
  }} />;
}

// What is known of uploads, by their ids.
function useUploads(api: Api, ids: string[]): Map<string, Upload> {
  const [known, setKnown] = useState(new Map<string, Upload>());
  useEffect(() => {
    let gone = false;
    void Promise.allSettled(ids.map((id) => api.get(`/uploads/${id}`))).then((found) => {
      if (gone) return;
      setKnown(new Map(found.flatMap((one) => one.status === "fulfilled" ? [[(one.value as Upload).id, one.value as Upload] as const] : [])));
    });
    return () => { gone = true; };
  }, [ids.join(",")]);
  return known;
}

// Perfetto takes one file at a time, and so do timelines.
function TraceFiles({api, groups, names, shown, show, label = "Timeline of"}: {api: Api; groups: {title: string; ids: string[]}[]; names: Map<string, Upload>; shown: string; show: (id: string) => void; label?: string}) {
  const nameOf = (id: string) => names.get(id)?.name ?? id.slice(0, 12);
  const all = groups.flatMap(({title, ids}) => ids.map((id): [string, string] => [id, title ? `${title}: ${nameOf(id)}` : nameOf(id)]));
  return (
    <div class="controls second">
      {all.length > 1 && <SelectControl label={label} value={shown} options={all} onChange={show} />}
      <p class="files"><a href={perfettoLink(shown)} target="_blank" rel="noopener">Open {nameOf(shown)} in Perfetto</a> <a href={contentLink(api, shown)} download={names.get(shown)?.name ?? "trace.json"}>Save it</a></p>
    </div>
  );
}

const idsOf = (text: string | undefined): string[] => (text ?? "").split(",").filter((id) => /^[0-9a-f]{64}$/.test(id));
const wordsOf = (ids: string[]): string[] => ids.map((id) => `upload:${id}`);

function OneRun({api, ids, names, shown, show}: {api: Api; ids: string[]; names: Map<string, Upload>; shown: string; show: (id: string) => void}) {
  // The overview at once, then the timeline, and the critical path when both are there: it takes longest.
  const [drawn, setDrawn] = useState("");
  const key = ids.join(",");
  const words = {files: wordsOf(ids), top: 500};
  const quick = useAsk<{trace: TraceAnswer}>(api, "trace", {...words, no_path: true});
  const whole = useAsk<{trace: TraceAnswer}>(api, "trace", drawn === key ? words : null);
  const traced = whole.answer && drawn === key && !whole.busy ? whole : quick;
  return (
    <Answered asked={traced}>{(answer) => (
      <>
        <TraceView answers={[answer.trace]} series={{}} />
        {drawn === key && whole.busy && <p class="note" role="status">Looking for the critical path ...</p>}
        <TraceFiles api={api} groups={[{title: "", ids}]} names={names} shown={shown} show={show} />
        <ServedTimeline api={api} upload={shown} title="Timeline" onReady={() => setDrawn(key)} />
        <p class="next"><a href={linkTo("whatif", {trace: ids[0] ?? ""})}>What would make it faster?</a></p>
      </>
    )}</Answered>
  );
}

function TwoRuns({api, before, after, names, shown, show}: {api: Api; before: string[]; after: string[]; names: Map<string, Upload>; shown: string; show: (id: string) => void}) {
  const compared = useAsk<TraceCompare>(api, "trace", {files: wordsOf(before), compare: wordsOf(after), top: 500});
  const single = before.length === 1 && after.length === 1;
  return (
    <Answered asked={compared}>{(answer) => (
      <>
        <TraceCompareView answers={[answer]} />
        <TraceFiles api={api} groups={[{title: "before", ids: before}, {title: "after", ids: after}]} names={names} shown={shown} show={show} label={single ? "File" : undefined} />
        {single ? <><ServedTimeline api={api} upload={before[0] ?? ""} title="Timeline before" /><ServedTimeline api={api} upload={after[0] ?? ""} title="Timeline after" /></>
          : <ServedTimeline api={api} upload={shown} title="Timeline" />}
      </>
    )}</Answered>
  );
}

export function TraceScreen(props: ScreenProps) {
  const {api, change} = props;
  const ids = idsOf(props.settings.files), against = idsOf(props.settings.against);
  const names = useUploads(api, [...ids, ...against]);
  const listed = (uploads: Upload[]) => uploads.map((upload) => upload.id).join(",");
  const drop = <Drop api={api} label="Choose traces" several note="PyTorch profiler traces (.json, .gz, .zst), one a rank. They stay on the machine that serves this page."
    onDone={(done) => change({files: listed(done), against: "", of: ""})} />;
  if (ids.length === 0) {
    return (
      <>
        <div class="verdict"><h1>Where did the time of a training run go?</h1><p>Drop what the PyTorch profiler recorded: overview, kernels, ops, modules, why the GPU was idle, the critical path, a timeline.</p></div>
        {drop}
      </>
    );
  }
  const shown = [...ids, ...against].find((id) => id === props.settings.of) ?? ids[0] ?? "";
  const show = (id: string) => change({of: id});
  return (
    <>
      <div class="pair drops">
        {drop}
        {against.length === 0 ? (
          <div>
            <Drop api={api} label="Compare with" several note="The same run after a change: what got faster, what slower." onDone={(done) => change({against: listed(done), of: ""})} />
            {ids.length === 2 && <p class="note"><button type="button" class="link" onClick={() => change({files: ids[0] ?? "", against: ids[1] ?? "", of: ""})}>Compare these two files</button> in place of taking them for two ranks of a run.</p>}
          </div>
        ) : (
          <p class="note"><button type="button" class="quiet" onClick={() => change({files: against.join(","), against: ids.join(","), of: ""})}>Swap before and after</button> <button type="button" class="quiet" onClick={() => change({against: "", of: ""})}>Compare no more</button></p>
        )}
      </div>
      {against.length === 0 ? <OneRun api={api} ids={ids} names={names} shown={shown} show={show} />
        : <TwoRuns api={api} before={ids} after={against} names={names} shown={shown} show={show} />}
    </>
  );
}
