// A table that sorts by any column, filters where it is long, and saves as CSV.
import type {ComponentChildren} from "preact";
import {useMemo, useState} from "preact/hooks";
import {type Cell, saveCsv} from "./download";
import {whole} from "../format";

export interface Column<Row> {
  title: string;
  value: (row: Row) => Cell;              // what is sorted by and saved
  show?: (row: Row) => ComponentChildren;  // what is seen, where that differs
  left?: boolean;                          // texts stand left; figures right
  wide?: boolean;                          // long texts, which may break
}

interface TableProps<Row> {
  title: string;
  columns: Column<Row>[];
  rows: Row[];
  note?: string;
  first?: number;  // how many rows are shown before "all"
  chosen?: (row: Row) => boolean;
}

type Order = {column: number; down: boolean} | null;

function compare(a: Cell, b: Cell): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  const none = (value: Cell) => value === null || value === undefined || value === "";
  if (none(a) || none(b)) return none(a) && none(b) ? 0 : none(a) ? -1 : 1;
  return String(a).localeCompare(String(b), "en", {numeric: true});
}

export function Table<Row>({title, columns, rows, note, first = 12, chosen}: TableProps<Row>) {
  const [order, setOrder] = useState<Order>(null);
  const [all, setAll] = useState(false);
  const [filter, setFilter] = useState("");
  const shown = useMemo(() => {
    const wanted = filter.toLowerCase();
    const kept = wanted
      ? rows.filter((row) => columns.some((column) => String(column.value(row) ?? "").toLowerCase().includes(wanted)))
      : rows.slice();
    const by = order && columns[order.column];
    if (by) kept.sort((a, b) => (order.down ? -1 : 1) * compare(by.value(a), by.value(b)));
    return kept;
  }, [rows, columns, order, filter]);
  const visible = all ? shown.slice(0, 5000) : shown.slice(0, first);
  const sort = (column: number) =>
    setOrder((now) => now?.column === column ? (now.down === !columns[column]?.left ? {column, down: !now.down} : null)
      : {column, down: !columns[column]?.left});
  return (
    <section class="table">
      <div class="tablehead">
        <div>
          <h3>{title}</h3>
          {note && <p class="note">{note}</p>}
        </div>
        <div class="saves">
          {rows.length > 20 && (
            <input type="search" placeholder="Filter" aria-label={`Filter ${title}`} value={filter}
              onInput={(event) => setFilter(event.currentTarget.value)} />
          )}
          <button type="button" class="quiet" aria-label={`Save ${title} as CSV`} onClick={() =>
            saveCsv(title, columns.map((column) => column.title), shown.map((row) => columns.map((column) => column.value(row))))}>CSV</button>
        </div>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label={title}>
        <table>
          <thead>
            <tr>
              {columns.map((column, i) => (
                <th key={i} scope="col" class={column.left ? "left" : ""}
                  aria-sort={order?.column === i ? (order.down ? "descending" : "ascending") : "none"}>
                  <button type="button" onClick={() => sort(i)}>
                    {column.title}<span class="arrow" aria-hidden="true">{order?.column === i ? (order.down ? "\u2193" : "\u2191") : ""}</span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {visible.map((row, r) => (
              <tr key={r} class={chosen?.(row) ? "chosen" : ""}>
                {columns.map((column, i) => (
                  <td key={i} class={`${column.left ? "left" : ""}${column.wide ? " wide" : ""}`}>
                    {column.wide ? <span class="clamp" title={String(column.value(row) ?? "")}>{column.show ? column.show(row) : String(column.value(row) ?? "")}</span>
                      : column.show ? column.show(row) : String(column.value(row) ?? "")}
                  </td>
                ))}
              </tr>
            ))}
            {visible.length === 0 && <tr><td class="left" colSpan={columns.length}>No row has this text.</td></tr>}
          </tbody>
        </table>
      </div>
      {shown.length > first && (
        <button type="button" class="quiet rest" onClick={() => setAll(!all)}>
          {all ? `Only the first ${first}` : `All ${whole(shown.length)} rows`}
        </button>
      )}
      {all && shown.length > 5000 && <p class="note">5,000 of {whole(shown.length)} rows are shown; CSV has all of them.</p>}
    </section>
  );
}
