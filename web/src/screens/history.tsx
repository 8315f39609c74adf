// History: answers that were kept, and two of them side by side.
import {useEffect, useState} from "preact/hooks";
import type {Answer} from "../answers";
import {bytes, day, ms, percent, plural, whole} from "../format";
import {Section, Verdict} from "../ui/parts";
import {Table} from "../ui/table";
import {AnswerView} from "../views/views";
import type {Problem} from "./api";
import {FaultNote, problemOf} from "./asking";
import {TextControl, type ScreenProps} from "./controls";

interface Kept {
  id: string;
  kind: string;
  created: string | number;
  model: string | null;
  gpu: string | null;
  batch: number | null;
  iter_ms: number | null;
  peak_reserved: number | null;
  tags?: Record<string, string>;
}

type Whole = Kept & {question: unknown; answer: Answer | Answer[]};

const when = (created: string | number): string => typeof created === "number" ? day(new Date(created * (created < 1e12 ? 1000 : 1)).toISOString()) : day(created);

function Difference({a, b}: {a: Kept; b: Kept}) {
  const rows = [
    {name: "Iteration", a: a.iter_ms, b: b.iter_ms, text: ms}, {name: "Memory reserved", a: a.peak_reserved, b: b.peak_reserved, text: bytes},
    {name: "Batch", a: a.batch, b: b.batch, text: whole}].filter((row) => row.a !== null && row.b !== null);
  return (
    <Section title="The two compared">
      <Table title={`${a.model ?? a.kind} on ${a.gpu ?? "-"} against ${b.model ?? b.kind} on ${b.gpu ?? "-"}`} rows={rows} columns={[
        {title: "figure", value: (row) => row.name, left: true}, {title: "first", value: (row) => row.a, show: (row) => row.text(row.a ?? 0)}, {title: "second", value: (row) => row.b, show: (row) => row.text(row.b ?? 0)},
        {title: "change", value: (row) => (row.b ?? 0) / (row.a || 1) - 1, show: (row) => `${(row.b ?? 0) >= (row.a ?? 0) ? "+" : "\u2212"}${percent(Math.abs((row.b ?? 0) / (row.a || 1) - 1))}`}]} />
    </Section>
  );
}

export function History(props: ScreenProps) {
  const {api, settings, change} = props;
  const [rows, setRows] = useState<Kept[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [shown, setShown] = useState<Whole | null>(null);
  const [fault, setFault] = useState<Problem | null>(null);
  const [told, setTold] = useState("");
  const failed = (error: unknown) => setFault(problemOf(error));
  const query = (after: string) => {
    const words = new URLSearchParams({limit: "100"});
    for (const name of ["kind", "model", "gpu", "tag"]) if (settings[name]) words.set(name, settings[name] ?? "");
    if (after) words.set("after", after);
    return `/results?${words}`;
  };
  const load = (after: string) => api.get(query(after)).then((answer) => {
    const page = answer as {results: Kept[]; next: string | null};
    setRows((now) => after ? [...(now ?? []), ...page.results] : page.results);
    setNext(page.next);
    setFault(null);
  }, failed);
  useEffect(() => void load(""), [settings.kind, settings.model, settings.gpu, settings.tag]);
  useEffect(() => {
    setTold("");
    if (!settings.id) return setShown(null);
    api.get(`/results/${settings.id}`).then((answer) => setShown(answer as Whole), failed);
  }, [settings.id]);
  const set = (name: string) => (value: string) => change({...settings, [name]: value});
  const pair = (settings.pair ?? "").split(",").filter((id) => id !== "");
  const tick = (id: string) => change({...settings, pair: (pair.includes(id) ? pair.filter((one) => one !== id) : [...pair, id].slice(-2)).join(",")});
  const [a, b] = pair.map((id) => rows?.find((row) => row.id === id));
  const forget = (id: string) => api.remove(`/results/${id}`).then(() => { change({...settings, id: "", pair: ""}); void load(""); }, failed);
  const tag = (id: string, text: string) => {
    const at = text.indexOf("=");
    if (at > 0) api.put(`/results/${id}/tags/${encodeURIComponent(text.slice(0, at).trim())}`, {value: text.slice(at + 1).trim()}).then(() => load(""), failed);
  };
  const measure = (id: string, text: string) => {
    const time = Number(text);
    if (!(time > 0)) return setTold("Give milliseconds, as 34.1");
    api.post(`/results/${id}/measurements`, {iter_ms: time}).then(() => setTold(`${ms(time)}: noted, see Trust`), failed);
  };
  return (
    <>
      <form class="controls" aria-label="Settings" onSubmit={(event) => event.preventDefault()}>
        <TextControl label="Kind" value={settings.kind ?? ""} placeholder="predict" onChange={set("kind")} />
        <TextControl label="Model" value={settings.model ?? ""} list={props.lists.models} onChange={set("model")} />
        <TextControl label="GPU" value={settings.gpu ?? ""} placeholder="NVIDIA H200" onChange={set("gpu")} />
        <TextControl label="Tag" value={settings.tag ?? ""} placeholder="git=abc" onChange={set("tag")} />
      </form>
      <FaultNote problem={fault} />
      {rows && rows.length === 0 && <Verdict below="Keep on the Forecast screen keeps an answer.">Nothing is kept yet{settings.model || settings.kind || settings.gpu || settings.tag ? " that is like this" : ""}.</Verdict>}
      {rows && rows.length > 0 && !shown && <Verdict below="A date opens the answer.">{plural(rows.length, "answer")}{next ? " and more" : ""} {rows.length === 1 ? "is" : "are"} kept.</Verdict>}
      {rows && rows.length > 0 && (
        <Section title="What was kept"><Table title="Kept answers" note="Tick two to compare them." rows={rows} first={50} columns={[
          {title: "compare", value: (row) => pair.includes(row.id) ? "yes" : "", left: true, show: (row) => <input type="checkbox" aria-label={`Compare ${row.model ?? row.kind} of ${when(row.created)}`} checked={pair.includes(row.id)} onChange={() => tick(row.id)} />},
          {title: "when", value: (row) => row.created, left: true, show: (row) => <button type="button" class="link" onClick={() => change({...settings, id: row.id})}>{when(row.created)}</button>},
          {title: "kind", value: (row) => row.kind, left: true}, {title: "model", value: (row) => row.model, left: true}, {title: "GPU", value: (row) => row.gpu, left: true},
          {title: "batch", value: (row) => row.batch, show: (row) => row.batch === null ? "" : whole(row.batch)}, {title: "iteration", value: (row) => row.iter_ms, show: (row) => row.iter_ms === null ? "" : ms(row.iter_ms)},
          {title: "memory", value: (row) => row.peak_reserved, show: (row) => row.peak_reserved === null ? "" : bytes(row.peak_reserved)},
          {title: "tags", value: (row) => Object.entries(row.tags ?? {}).map(([key, value]) => `${key}=${value}`).join(", "), left: true}]} /></Section>
      )}
      {next && <button type="button" class="quiet" onClick={() => void load(next)}>Older ones</button>}
      {a && b && <Difference a={a} b={b} />}
      {shown && (
        <div class="kept">
          <div class="keptbar">
            <span class="note">Kept {when(shown.created)}</span>
            <TextControl label="Add a tag" value="" placeholder="git=abc" onChange={(text) => tag(shown.id, text)} />
            {shown.kind === "predict" && <TextControl label="It really took, ms" value="" placeholder="34.1" hint="Trust shows it beside the forecast" onChange={(text) => measure(shown.id, text)} />}
            {told && <span class="note" role="status">{told}</span>}
            <button type="button" class="quiet" onClick={() => void forget(shown.id)}>Forget it</button>
          </div>
          <AnswerView report={{verb: shown.kind, command: "", made: "", version: "", answers: Array.isArray(shown.answer) ? shown.answer : [shown.answer], series: {}}} />
        </div>
      )}
    </>
  );
}
