// Slices on lanes over time: a Gantt chart, a trace. Wheel and + - zoom, dragging and arrows move, 0 shows all; what is under
// the pointer is told below. Slices that touch within a row of pixels are drawn as one, so that 10^5 of them stay smooth. Where there
// are more lanes than can be told apart, those that have something in view share the height: zooming in spreads them.
import {useEffect, useRef} from "preact/hooks";
import {colour, Figure, useScheme, useWidth, type Csv} from "./figure";

export interface Slices {
  lane: ArrayLike<number>;
  from: ArrayLike<number>;
  to: ArrayLike<number>;
  tone: ArrayLike<number>;  // which of `tones`
  text: (index: number) => string;
}

interface LanesProps {
  title: string;
  note?: string;
  csv: Csv;
  lanes: string[];
  slices: Slices;
  tones: {name: string; colour: string}[];
  begin: number;
  end: number;
  timeText: (value: number) => string;
  tickText?: (value: number) => string;
  steps?: number[];  // of the axis; else 1, 2, 5, 10 and so on
  rowHeight?: number;
  onView?: (from: number, to: number) => void;  // hears what is shown, for more detail of it
}

interface View {
  from: number;
  to: number;
}

const kAxis = 22;
const kTall = 560, kTallest = 1400;  // pixels of all lanes
const kNamed = 11;                   // pixels that a lane's name needs

function stepOf(span: number, most: number): number {
  const raw = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= raw) ?? raw;
}

export function Lanes(props: LanesProps) {
  const [ref, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const readout = useRef<HTMLDivElement>(null);
  const view = useRef<View>({from: props.begin, to: props.end});
  const scheme = useScheme();
  const count = Math.max(1, props.lanes.length);
  const evenly = props.rowHeight ? Math.min(props.rowHeight, kTallest / count) : Math.min(20, kTall / count);
  const height = Math.max(60, Math.ceil(evenly * count)) + kAxis;
  const named = evenly >= kNamed;
  const left = named ? Math.min(170, width * 0.28) : 8;

  useEffect(() => {
    view.current = {from: props.begin, to: props.end};
  }, [props.begin, props.end]);

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || width === 0) return;
    const ratio = devicePixelRatio || 1;
    element.width = width * ratio;
    element.height = height * ratio;
    element.style.height = `${height}px`;
    const tones = props.tones.map((tone) => colour(tone.colour));
    const ink = colour("ink"), soft = colour("soft"), line = colour("line");
    const family = getComputedStyle(document.body).fontFamily;
    const plot = width - left;
    // Plain numbers side by side, in the order of their tones: a canvas is slow to change its colour.
    const order = Uint32Array.from({length: props.slices.from.length}, (_, i) => i).sort((a, b) => (props.slices.tone[a] ?? 0) - (props.slices.tone[b] ?? 0) || a - b);
    const column = (values: ArrayLike<number>) => Float64Array.from(order, (i) => values[i] ?? 0);
    const lane = column(props.slices.lane), from = column(props.slices.from), to = column(props.slices.to), tone = column(props.slices.tone);
    let frame = 0;
    // Which lane is on top, and how many pixels each has.
    let top = 0, row = evenly;
    const spread = (start: number, stop: number) => {
      if (named) return;
      let first = count, last = -1;
      for (let i = 0; i < from.length; ++i) {
        if (to[i]! < start || from[i]! > stop) continue;
        first = Math.min(first, lane[i]!);
        last = Math.max(last, lane[i]!);
      }
      if (last < first) return;
      top = first;
      row = Math.min(20, (height - kAxis) / (last - first + 1));
    };
    const drawSlices = (start: number, stop: number, scale: number) => {
      // Of each row of pixels (or lane, where these are taller) what is not drawn yet.
      const tall = Math.max(row, 1), rows = Math.ceil((height - kAxis) / tall) + 1;
      const begins = new Float64Array(rows), ends = new Float64Array(rows);
      const fill = (y: number) => context.fillRect(left + begins[y]!, kAxis + y * tall, ends[y]! - begins[y]!, tall > 3 ? tall - 1 : tall);
      const fillAll = () => {
        for (let y = 0; y < rows; ++y) if (ends[y]! > begins[y]!) fill(y);
        begins.fill(0);
        ends.fill(0);
      };
      let colour = -1;
      for (let i = 0; i < from.length; ++i) {
        if (to[i]! < start || from[i]! > stop) continue;
        if (tone[i] !== colour) {
          fillAll();
          colour = tone[i]!;
          context.fillStyle = tones[colour] ?? ink;
        }
        const y = Math.floor(((lane[i]! - top) * row) / tall);
        const x = Math.max((from[i]! - start) * scale, -1), end = Math.min(Math.max((to[i]! - start) * scale, x + 0.6), plot + 1);
        if (ends[y]! > begins[y]! && x >= begins[y]! && x <= ends[y]!) {
          ends[y] = Math.max(ends[y]!, end);
          continue;
        }
        if (ends[y]! > begins[y]!) fill(y);
        begins[y] = x;
        ends[y] = end;
      }
      fillAll();
    };

    const draw = () => {
      frame = 0;
      const {from: start, to: stop} = view.current;
      spread(start, stop);
      const scale = plot / Math.max(stop - start, 1e-12);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, height);
      context.font = `11px ${family}`;
      context.textBaseline = "middle";
      const step = props.steps?.find((one) => one >= (stop - start) / (plot / 90)) ?? stepOf(stop - start, Math.floor(plot / 90));
      context.textAlign = "center";
      for (let tick = Math.ceil(start / step) * step; tick <= stop; tick += step) {
        const x = left + (tick - start) * scale;
        context.fillStyle = line;
        context.fillRect(x, kAxis, 1, height - kAxis);
        context.fillStyle = soft;
        context.fillText((props.tickText ?? props.timeText)(tick), Math.min(Math.max(x, left + 24), width - 26), kAxis / 2);
      }
      context.save();
      context.beginPath();
      context.rect(left, kAxis, plot, height);
      context.clip();
      drawSlices(start, stop, scale);
      context.restore();
      if (named) {
        context.textAlign = "right";
        context.fillStyle = ink;
        props.lanes.forEach((name, i) => {
          let text = name;
          while (text.length > 4 && context.measureText(text).width > left - 12) text = text.slice(0, -2) + "\u2026";
          context.fillText(text, left - 8, kAxis + (i + 0.5) * row);
        });
      }
    };
    const later = () => {
      if (!frame) frame = requestAnimationFrame(draw);
      props.onView?.(view.current.from, view.current.to);
    };
    const move = (from: number, to: number) => {
      const whole = props.end - props.begin;
      const span = Math.min(Math.max(to - from, whole * 1e-7), whole);
      const start = Math.min(Math.max(from, props.begin), props.end - span);
      view.current = {from: start, to: start + span};
      later();
    };
    const zoom = (factor: number, at: number) => {
      const {from, to} = view.current;
      move(at - (at - from) * factor, at + (to - at) * factor);
    };
    const timeAt = (x: number) => view.current.from + ((x - left) / plot) * (view.current.to - view.current.from);
    const tell = (x: number, y: number) => {
      if (!readout.current) return;
      const time = timeAt(x), at = top + Math.floor((y - kAxis) / row), slack = (view.current.to - view.current.from) / plot;
      let found = -1;
      for (let i = 0; i < from.length; ++i) {
        if (lane[i] === at && from[i]! - slack <= time && to[i]! + slack >= time) found = order[i]!;
      }
      readout.current.textContent = found >= 0 ? props.slices.text(found) : `${props.timeText(time)}${props.lanes[at] ? ` \u00b7 ${props.lanes[at]}` : ""}`;
    };
    let drag: {x: number; from: number; to: number} | null = null;
    const down = (event: PointerEvent) => {
      drag = {x: event.offsetX, ...view.current};
      element.setPointerCapture(event.pointerId);
    };
    const over = (event: PointerEvent) => {
      if (!drag) return tell(event.offsetX, event.offsetY);
      const shift = ((event.offsetX - drag.x) / plot) * (drag.to - drag.from);
      move(drag.from - shift, drag.to - shift);
    };
    const up = () => { drag = null; };
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) < Math.abs(event.deltaY) && !event.altKey && document.activeElement !== element) return;
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, timeAt(event.offsetX));
    };
    const key = (event: KeyboardEvent) => {
      const {from, to} = view.current, span = to - from, middle = (from + to) / 2;
      const keys: Record<string, () => void> = {
        "+": () => zoom(1 / 1.5, middle), "=": () => zoom(1 / 1.5, middle), "-": () => zoom(1.5, middle), "0": () => move(props.begin, props.end),
        ArrowLeft: () => move(from - span / 8, to - span / 8), ArrowRight: () => move(from + span / 8, to + span / 8),
      };
      const action = keys[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    element.addEventListener("pointerdown", down);
    element.addEventListener("pointermove", over);
    element.addEventListener("pointerup", up);
    element.addEventListener("wheel", wheel, {passive: false});
    element.addEventListener("keydown", key);
    draw();
    return () => {
      cancelAnimationFrame(frame);
      element.removeEventListener("pointerdown", down);
      element.removeEventListener("pointermove", over);
      element.removeEventListener("pointerup", up);
      element.removeEventListener("wheel", wheel);
      element.removeEventListener("keydown", key);
    };
  }, [props.slices, props.lanes, width, height, scheme]);

  return (
    <Figure title={props.title} csv={props.csv}
      note={`${props.note ? `${props.note} ` : ""}Drag to move; click it, then wheel or + and - to zoom, 0 to see all.`}>
      <div ref={ref} class="lanes">
        <ul class="legend" aria-hidden="true">
          {props.tones.map((tone) => <li key={tone.name}><span class={`swatch c-${tone.colour}`} />{tone.name}</li>)}
        </ul>
        <canvas ref={canvas} tabIndex={0} role="img" aria-label={`${props.title}: ${props.lanes.length} rows. Arrow keys move, plus and minus zoom. The CSV button saves its figures.`} />
        <div ref={readout} class="readout">{"\u00a0"}</div>
      </div>
    </Figure>
  );
}
