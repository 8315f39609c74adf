// What leaves the page: CSV and PNG, made here and saved by the browser; nothing is sent anywhere.

export type Cell = string | number | boolean | null | undefined;

// RFC 4180. A text that a spreadsheet would take for a formula is kept one by a quote before it.
function cell(value: Cell): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export function csvText(header: string[], rows: Cell[][]): string {
  return [header, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

export function fileName(title: string, ending: string): string {
  const plain = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60);
  return `forerun-${plain || "chart"}.${ending}`;
}

export function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function saveCsv(title: string, header: string[], rows: Cell[][]): void {
  save(new Blob([csvText(header, rows)], {type: "text/csv"}), fileName(title, "csv"));
}

const kStyles = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "font-weight",
  "text-anchor", "dominant-baseline"];

// A drawing as an image: its colours come from the page's style, so they are written into a copy.
async function imageOf(svg: SVGSVGElement): Promise<HTMLImageElement> {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = [svg, ...svg.querySelectorAll("*")];
  const to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of kStyles) to[i]?.setAttribute(name, style.getPropertyValue(name));
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const image = new Image();
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(new XMLSerializer().serializeToString(copy));
  await image.decode();
  return image;
}

// The chart within `frame`, under its title, on the page's background.
export async function savePng(title: string, note: string, frame: HTMLElement): Promise<void> {
  const drawing = frame.querySelector<HTMLCanvasElement | SVGSVGElement>("canvas, svg.chart");
  if (!drawing) return;
  const box = drawing.getBoundingClientRect();
  const scale = 2, margin = 16, head = note ? 58 : 38;
  const canvas = document.createElement("canvas");
  canvas.width = (box.width + 2 * margin) * scale;
  canvas.height = (box.height + head + margin) * scale;
  const context = canvas.getContext("2d");
  if (!context) return;
  const style = getComputedStyle(document.body);
  context.scale(scale, scale);
  context.fillStyle = style.backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = style.color;
  context.font = `600 15px ${style.fontFamily}`;
  context.fillText(title, margin, 24);
  context.font = `12px ${style.fontFamily}`;
  if (note) context.fillText(note, margin, 44);
  const picture = drawing instanceof SVGSVGElement ? await imageOf(drawing) : drawing;
  context.drawImage(picture, margin, head, box.width, box.height);
  canvas.toBlob((blob) => blob && save(blob, fileName(title, "png")));
}
