// Curves, areas and points over a numeric axis, drawn by uPlot: drag to zoom, double-click to see all again.
import {useEffect, useMemo, useRef} from "preact/hooks";
import uPlot from "uplot";
import {colour, Figure, useScheme, useWidth} from "./figure";
import type {Csv} from "./figure";

export interface Line {
  name: string;
  colour: string;  // a variable of the style, without its dashes
  values: (number | null)[];
  fill?: boolean;   // the area below it
  points?: boolean; // marks, no line
  dash?: number[];
  steps?: boolean;
  width?: number;
}

export interface Mark {
  x?: number;
  y?: number;
  text: string;
  tone?: string;
}

interface PlotProps {
  title: string;
  note?: string;
  csv?: Csv;
  x: number[];
  lines: Line[];       // drawn in this order
  bands?: [number, number][];  // areas between two lines, by their numbers
  stacked?: boolean;   // lines add up, the first at the bottom
  marks?: Mark[];
  names?: string[];    // of points, shown beside them
  xLabel: string;
  yLabel: string;
  xText?: (value: number) => string;
  yText: (value: number) => string;
  xTicks?: (value: number) => string;
  yTicks: (value: number) => string;
  yIncrements?: number[];
  xLog?: boolean;
  xFromZero?: boolean;
  xTickPlaces?: number[];
  yMost?: number;
  height?: number;
  hint?: (index: number) => string;  // a line about the place under the cursor
}

function cumulated(lines: Line[]): (number | null)[][] {
  const sums: (number | null)[][] = [];
  lines.forEach((line, k) => {
    const below = sums[k - 1];
    sums.push(line.values.map((value, i) => (value ?? 0) + (below?.[i] ?? 0)));
  });
  return sums;
}

// A text that can be read on whatever is drawn below it.
function label(ctx: CanvasRenderingContext2D, text: string, x: number, y: number, wide: number, ratio: number): void {
  const ink = ctx.fillStyle;
  ctx.fillStyle = colour("paper");
  ctx.fillRect(x - 2 * ratio, y - 1.5 * ratio, wide + 4 * ratio, 14 * ratio);
  ctx.fillStyle = ink;
  ctx.fillText(text, x, y);
}

function drawMarks(u: uPlot, marks: Mark[], names: string[] | undefined): void {
  const {ctx} = u;
  const ratio = uPlot.pxRatio;
  const {left, top, width, height} = u.bbox;
  ctx.save();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  for (const mark of marks) {
    ctx.strokeStyle = ctx.fillStyle = colour(mark.tone ?? "ink");
    ctx.lineWidth = ratio;
    ctx.setLineDash([4 * ratio, 4 * ratio]);
    ctx.beginPath();
    const wide = ctx.measureText(mark.text).width;
    if (mark.x !== undefined) {
      const x = u.valToPos(mark.x, "x", true);
      if (x < left - 1 || x > left + width + 1) continue;
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      const flipped = x + wide + 10 * ratio > left + width;
      label(ctx, mark.text, flipped ? x - wide - 5 * ratio : x + 5 * ratio, top + (mark.y ?? 0) * 15 * ratio + 3 * ratio, wide, ratio);
    } else if (mark.y !== undefined) {
      const y = u.valToPos(mark.y, "y", true);
      if (y < top || y > top + height) continue;
      ctx.moveTo(left, y);
      ctx.lineTo(left + width, y);
      label(ctx, mark.text, left + width - wide - 4 * ratio, y + 4 * ratio, wide, ratio);
    }
    ctx.stroke();
  }
  if (names) {
    const taken: [number, number, number][] = [];
    ctx.setLineDash([]);
    ctx.fillStyle = colour("ink");
    ctx.textBaseline = "middle";
    u.data[0].forEach((value, i) => {
      const at = u.data.slice(1).map((series) => series[i]).find((y) => y !== null && y !== undefined);
      const name = names[i];
      if (at === undefined || at === null || !name) return;
      const wide = ctx.measureText(name).width;
      const px = u.valToPos(value, "x", true), y = u.valToPos(at, "y", true);
      const x = px + wide + 12 * ratio > left + width ? px - wide - 8 * ratio : px + 8 * ratio;
      if (taken.some(([from, to, line]) => x < to && x + wide > from && Math.abs(line - y) < 12 * ratio)) return;
      taken.push([x, x + wide, y]);
      ctx.fillText(name, x, y);
    });
  }
  ctx.restore();
}

// Of ticks that stand too close for their texts, the first.
function spaced(u: uPlot, places: number[]): (number | null)[] {
  let last = -Infinity;
  return places.map((place) => {
    const x = u.valToPos(place, "x");
    if (x - last < 48) return null;
    last = x;
    return place;
  });
}

function options(props: PlotProps, width: number, onCursor: (index: number | null) => void): uPlot.Options {
  const ink = colour("soft"), grid = colour("line");
  const axis = {stroke: ink, grid: {stroke: grid, width: 1}, ticks: {stroke: grid, width: 1}, font: "11px system-ui, sans-serif", labelFont: "11px system-ui, sans-serif"};
  const series: uPlot.Series[] = props.lines.map((line) => ({
    label: line.name,
    stroke: colour(line.colour),
    width: line.points ? 0 : line.width ?? (props.stacked ? 0.5 : 2),
    dash: line.dash,
    fill: line.fill || props.stacked ? colour(line.colour) + (props.stacked ? "cc" : "30") : undefined,
    points: line.points ? {show: true, size: 9, fill: colour(line.colour), stroke: colour("paper")} : {show: props.x.length < 25 && !props.stacked, size: 6, fill: colour(line.colour)},
    paths: line.steps && uPlot.paths.stepped ? uPlot.paths.stepped({align: 1}) : undefined,
  }));
  return {
    width,
    height: props.height ?? (width < 560 ? 240 : 320),
    legend: {show: false},
    cursor: {drag: {x: true, y: false}, points: {show: !props.stacked}, focus: {prox: 16}},
    scales: {
      x: {time: false, distr: props.xLog ? 3 : 1, log: 10, ...(props.xFromZero ? {range: (_u: uPlot, _low: number, high: number): uPlot.Range.MinMax => [0, high * 1.12 || 1]} : {})},
      y: {range: (_u, _low, high) => [0, Math.max(high, props.yMost ?? 0) * 1.06 || 1]},
    },
    axes: [
      {...axis, label: props.xLabel, labelSize: 20, size: 34, ...(props.xTickPlaces ? {splits: () => props.xTickPlaces ?? [], filter: spaced} : {}), values: (_u, ticks) => ticks.map((tick) => tick === null ? "" : (props.xTicks ?? props.xText ?? String)(tick))},
      {...axis, label: props.yLabel, labelSize: 18, size: 56, incrs: props.yIncrements, values: (_u, ticks) => ticks.map(props.yTicks)},
    ],
    series: [{}, ...(props.stacked ? series.slice().reverse() : series)],
    bands: props.bands?.map(([over, under]) => ({series: [over + 1, under + 1], fill: colour(props.lines[over]?.colour ?? "accent") + "30"})),
    hooks: {
      draw: [(u) => drawMarks(u, props.marks ?? [], props.names)],
      setCursor: [(u) => onCursor(u.cursor.idx ?? null)],
    },
  };
}

function describe(props: PlotProps, index: number): string[] {
  const x = props.x[index];
  const texts = props.lines.map((line) => {
    const value = line.values[index];
    return value === null || value === undefined ? "" : `${line.name} ${props.yText(value)}`;
  });
  const place = x === undefined ? "" : (props.xText ?? String)(x);
  return [props.names?.[index] ? `${props.names[index]}, ${place}` : place, ...texts.filter((text) => text !== "")];
}

export function Plot(props: PlotProps) {
  const [ref, width] = useWidth();
  const place = useRef<HTMLDivElement>(null);
  const line = useRef<HTMLDivElement>(null);
  const scheme = useScheme();
  const csv = props.csv ?? {
    header: [props.xLabel, ...props.lines.map((one) => one.name)],
    rows: () => props.x.map((x, i) => [x, ...props.lines.map((one) => one.values[i])]),
  };
  const data = useMemo<uPlot.AlignedData>(() => {
    const columns = props.stacked ? cumulated(props.lines).reverse() : props.lines.map((one) => one.values);
    return [props.x, ...columns];
  }, [props.x, props.lines, props.stacked]);
  useEffect(() => {
    if (!place.current || width === 0) return;
    const show = (index: number | null) => {
      if (!line.current) return;
      const texts = index === null ? [] : [...describe(props, index), props.hint?.(index) ?? ""].filter((text) => text !== "");
      line.current.textContent = texts.join(" \u00b7 ") || "\u00a0";
    };
    const chart = new uPlot(options(props, width, show), data, place.current);
    return () => chart.destroy();
  }, [data, width, scheme]);
  return (
    <Figure title={props.title} note={props.note} csv={csv}>
      <div ref={ref}>
        {props.lines.length > 1 && (
          <ul class="legend" aria-hidden="true">
            {props.lines.map((one) => <li key={one.name}><span class={`swatch c-${one.colour}`} />{one.name}</li>)}
          </ul>
        )}
        <div ref={place} role="img" aria-label={`${props.title}. ${props.note ?? ""} ${props.yLabel} over ${props.xLabel}. The CSV button saves its figures.`} />
        <div ref={line} class="readout">{"\u00a0"}</div>
      </div>
    </Figure>
  );
}
