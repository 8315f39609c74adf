// An answer that has no charts of its own: its figures, and its lists as tables.
import type {Answer} from "../answers";
import {bytes, figure, ms, percent, plural, seconds, us, whole, words} from "../format";
import {Facts, Notes, Section, Verdict} from "../ui/parts";
import {Table, type Column} from "../ui/table";
import type {Cell} from "../ui/download";

type Record_ = Record<string, unknown>;
const isRecord = (value: unknown): value is Record_ => typeof value === "object" && value !== null && !Array.isArray(value);
const isScalar = (value: unknown): value is Cell => value === null || ["string", "number", "boolean"].includes(typeof value);

// Units as fields' names tell them (docs/schema).
export function fieldText(name: string, value: unknown): string {
  if (value === null || value === undefined) return "-";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return Array.isArray(value) ? value.map((one) => fieldText(name, one)).join(", ") : isRecord(value) ? JSON.stringify(value) : String(value);
  if (/_ms$/.test(name)) return ms(value);
  if (/_us$/.test(name)) return us(value);
  if (/(_bytes|^bytes|^largest|memory)$/.test(name)) return bytes(value);
  if (/(_share|^share|^error|mean_error|\bmre|mape|mape_predicted|mape_fitted|\bbias|\bworst)$/.test(name)) return percent(value);
  if (/(seconds|jct|wait)$/.test(name)) return seconds(value);
  return Number.isInteger(value) ? whole(value) : figure(value);
}

const fieldTitle = (name: string): string => words(name.replace(/_(ms|us|bytes)$/, ""));

function flattened(record: Record_, prefix = ""): [string, Cell][] {
  return Object.entries(record).flatMap(([name, value]): [string, Cell][] => {
    const full = prefix ? `${prefix} ${name}` : name;
    if (isRecord(value)) return flattened(value, full);
    if (Array.isArray(value)) return value.every(isScalar) ? [[full, value.join(", ")]] : [[full, plural(value.length, "entry", "entries")]];
    return isScalar(value) ? [[full, value]] : [];
  });
}

export function RecordTable({title, rows, note}: {title: string; rows: Record_[]; note?: string}) {
  const flat = rows.map((row) => new Map(flattened(row)));
  const names = [...new Set(flat.flatMap((row) => [...row.keys()]))].filter((name) => name !== "schema");
  const columns: Column<Map<string, Cell>>[] = names.map((name) => {
    const numeric = flat.every((row) => typeof (row.get(name) ?? 0) === "number");
    const long = flat.some((row) => String(row.get(name) ?? "").length > 40);
    return {title: fieldTitle(name), value: (row) => row.get(name), show: (row) => row.has(name) ? fieldText(name, row.get(name)) : "", left: !numeric, wide: long};
  });
  return <Table title={title} note={note} columns={columns} rows={flat} first={40} />;
}

export function RecordBody({record}: {record: Record_}) {
  const entries = Object.entries(record).filter(([name]) => name !== "schema" && name !== "assumptions" && name !== "warnings");
  const scalars = entries.filter(([, value]) => isScalar(value));
  const lists = entries.filter((entry): entry is [string, Record_[]] => Array.isArray(entry[1]) && entry[1].length > 0 && entry[1].every(isRecord));
  const texts = entries.filter((entry): entry is [string, Cell[]] => Array.isArray(entry[1]) && entry[1].length > 0 && entry[1].every(isScalar));
  const records = entries.filter((entry): entry is [string, Record_] => isRecord(entry[1]) && Object.keys(entry[1]).length > 0);
  const listOf = (name: string): string[] => Array.isArray(record[name]) ? (record[name] as unknown[]).map(String) : [];
  return (
    <>
      <Facts facts={scalars.map(([name, value]) => ({name: fieldTitle(name), value: fieldText(name, value)}))} />
      {records.map(([name, value]) => (
        <Section key={name} title={words(name)}>
          <Facts facts={flattened(value).map(([inner, cell]) => ({name: fieldTitle(inner), value: fieldText(inner, cell)}))} />
        </Section>
      ))}
      {lists.map(([name, rows]) => <Section key={name} title={words(name)}><RecordTable title={`All ${name.replace(/_/g, " ")}`} rows={rows} /></Section>)}
      {texts.map(([name, values]) => <Notes key={name} title={words(name)} notes={values.map((value) => fieldText(name, value))} />)}
      <Notes title="Warnings" notes={listOf("warnings")} open />
      <Notes title="Assumptions" notes={listOf("assumptions")} />
    </>
  );
}

// An evaluation of `eval`: what was judged, and by how much predictions were off.
export function EvalView({answers}: {answers: Answer[]}) {
  return (
    <>
      {answers.map((answer, i) => {
        const text = (name: string) => typeof answer[name] === "string" ? answer[name] as string : "";
        const number = (name: string) => typeof answer[name] === "number" ? answer[name] as number : null;
        const off = number("mape_predicted") ?? number("mre") ?? number("mape");
        const what = text("title") || `Suite ${text("suite") || (answer.schema.split("/")[0] ?? "").replace("forerun.eval.", "")}`;
        return (
          <div key={i}>
            <Verdict below={off === null ? undefined : what}>{off === null ? what : <>Predictions are off by <em>{percent(off)}</em> on average.</>}</Verdict>
            <RecordBody record={answer} />
          </div>
        );
      })}
    </>
  );
}

export function GenericView({answers, verb}: {answers: Answer[]; verb: string}) {
  const only = answers.length === 1 ? answers[0] : undefined;
  if (only) return <><Verdict>forerun {verb}</Verdict><RecordBody record={only} /></>;
  return <><Verdict>forerun {verb}: {plural(answers.length, "answer")}</Verdict><Section title="Answers"><RecordTable title="All of them" rows={answers} /></Section></>;
}
