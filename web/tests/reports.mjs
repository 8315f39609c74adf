// Files that --html writes, in a browser: every verb, wide and narrow, light and dark; what is saved; hostile names.
import {readFileSync, statSync, writeFileSync} from "node:fs";
import {join} from "node:path";
import {axe, browser, check, downloaded, finish, folder, forerun, kSizes, layout, newPage, source} from "./browser.mjs";

const program = process.argv[2];
const traces = "data/h200/whatif_traces";

const cases = {
  predict: ["predict", "resnet50", "--batch", "64"],
  predict_job: ["predict", "gpt2_small", "--gpu", "a100", "--batch", "8", "--tokens", "1B", "--price", "a100=2"],
  predict_too_large: ["predict", "llama2_7b", "--gpu", "t4"],
  predict_records: ["predict", "tests/data/run1.jsonl.zst"],
  fit: ["fit", "resnet18", "--gpu", "t4"],
  fit_none: ["fit", "llama2_7b", "--gpu", "t4"],
  compare: ["compare", "resnet18", "--gpus", "h200,t4,l4,a100", "--price", "h200=3,t4=0.3,l4=0.7", "--samples", "10M"],
  compare_some_do_not_fit: ["compare", "llama2_7b", "--gpus", "h200,t4", "--precision", "amp_bf16"],
  sweep: ["sweep", "resnet18", "--over", "batch=8..64*2", "--over", "precision=fp32,amp_bf16"],
  sweep_with_errors: ["sweep", "gpt2_small", "--over", "gpu=h200,t4", "--over", "length=64,100000"],
  memory_replay: ["memory", "replay", "tests/data/run1.jsonl.zst"],
  trace: ["trace", `${traces}/vgg19.base.trace.json.zst`],
  trace_compare: ["trace", `${traces}/vgg19.base.trace.json.zst`, "--compare", `${traces}/gnmt.base.trace.json.zst`],
  trace_execution: ["trace", "tests/corpus/execution_trace/flat.json"],
  replay: ["replay", `${traces}/vgg19.base.trace.json.zst`],
  whatif: ["whatif", "resnet18", "--apply", "amp"],
  whatif_all: ["whatif", "resnet18", "--all"],
  whatif_sweep: ["whatif", "resnet18", "--apply", "ddp", "--apply", "p3", "--each", "--sweep", "workers=2,4,8"],
  scale: ["scale", "resnet50", "--gpus", "1,2,4,8"],
  scale_search: ["scale", "gpt2_small", "--gpus", "8", "--global-batch", "64", "--search"],
  scale_mixed: ["scale", "resnet50", "--gpu", "h200=8,t4=8", "--network", "h200=8xndr,t4=25gbe"],
  scale_testbed: ["scale", "resnet18", "--testbed", "P1w2-10G"],
  schedule: ["schedule", "examples/jobs.csv", "--gpus", "a100=4,v100=8", "--compare", "fifo", "sjf", "srtf"],
  schedule_one: ["schedule", "--synthetic", "jobs=3000,gpus=32", "--policy", "sjf", "--by", "user"],
  monitor: ["monitor", "--seconds", "0.3"],
  zoo_check: ["zoo", "check", "data/captures/zoo.jsonl.zst"],
  devices: ["devices"],
  devices_links: ["devices", "--links"],
  data_summary: ["data", "summary", "data/captures"],
};

const fileOf = (name) => join(folder, `${name}.html`);

function write(name, words) {
  const [verb, ...rest] = words;
  const two = ["memory", "zoo", "data"].includes(verb) && rest.length > 0;
  forerun(program, ...(two ? [verb, rest[0], "--html", fileOf(name), ...rest.slice(1)] : [verb, "--html", fileOf(name), ...rest]));
}

for (const [name, words] of Object.entries(cases)) {
  write(name, words);
  check(statSync(fileOf(name)).size < 3_000_000, `${name}: is small`, String(statSync(fileOf(name)).size));
  for (const size of kSizes) {
    for (const scheme of ["light", "dark"]) {
      const page = await newPage({size, scheme});
      await page.goto(`file://${fileOf(name)}`);
      await page.waitForTimeout(80);
      const what = `${name}, ${size.width} px, ${scheme}`;
      await layout(page, what);
      if ((size.width < 500) === (scheme === "dark")) await axe(page, what);
      if (process.env.FORERUN_SHOTS) await page.screenshot({path: join(process.env.FORERUN_SHOTS, `${name}.${size.width}.${scheme}.png`), fullPage: true});
      await page.context().close();
    }
  }
}

// What is on the page of a prediction: the program's own figures, the command, buttons that save.
{
  const page = await newPage();
  await page.goto(`file://${fileOf("predict")}`);
  const answer = JSON.parse(forerun(program, "predict", "resnet50", "--batch", "64", "--json"));
  const title = await page.textContent("h1");
  check(title.includes(answer.iter_ms.toPrecision(3)), "the verdict has the predicted time", title);
  check((await page.textContent("footer code")) === "forerun predict resnet50 --batch 64", "the command is told", await page.textContent("footer code"));
  const csv = await downloaded(page, page.getByRole("button", {name: "Save Memory over the iteration as CSV"}));
  check(csv.bytes.toString().startsWith("ops in program order,parameters"), "the chart's CSV has its columns", csv.bytes.toString().slice(0, 80));
  for (const chart of ["Memory over the iteration", "Costliest ops"]) {
    const png = await downloaded(page, page.getByRole("button", {name: `Save ${chart} as PNG`}));
    check(png.bytes.subarray(1, 4).toString() === "PNG" && png.bytes.length > 5000, `${chart} is saved as PNG`, `${png.name}, ${png.bytes.length} bytes`);
  }
  const times = page.getByRole("region", {name: "What lives at the peak"});
  await times.getByRole("button", {name: "size"}).click();
  await times.getByRole("button", {name: "size"}).click();
  check((await times.locator("th", {hasText: "size"}).getAttribute("aria-sort")) === "ascending", "a table sorts the other way at the second click");
  await page.getByRole("searchbox").first().fill("layer4.2");
  const rows = await page.getByRole("region", {name: "Ops in program order"}).locator("tbody tr").allTextContents();
  check(rows.length > 0 && rows.every((row) => row.includes("layer4.2")), "a filter leaves what has its text");
  await page.getByRole("button", {name: "Save Ops in program order as CSV"}).focus();
  check(await page.evaluate(() => document.activeElement?.tagName === "BUTTON"), "buttons take the keyboard's focus");
  await page.context().close();
}

// The Gantt chart and the timeline move by keys, and tell what is under the pointer.
for (const [name, label] of [["schedule", /Jobs under fifo/], ["trace", /Timeline/]]) {
  const page = await newPage();
  await page.goto(`file://${fileOf(name)}`);
  const chart = page.getByRole("img", {name: label});
  const before = await chart.screenshot();
  await chart.focus();
  for (const key of ["+", "+", "ArrowRight"]) await page.keyboard.press(key);
  await page.waitForTimeout(100);
  check(!before.equals(await chart.screenshot()), `${name}: keys zoom and move the chart`);
  await page.keyboard.press("0");
  const box = await chart.boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + box.height * 0.4);
  await page.waitForTimeout(50);
  const told = await page.locator(".lanes .readout").first().textContent();
  check(told.trim().length > 2, `${name}: what is under the pointer is told`, told);
  await page.context().close();
}

// Names are text. One that ends a script and brings an image must not become either.
{
  const name = "</script><img src=x onerror=\"window.caught=1\"><svg onload=\"window.caught=2\">";
  const record = readFileSync(join(source, "tests/corpus/run_record/small_run2.jsonl"), "utf8").split("\n")[0];
  const modules = JSON.parse(record);
  const text = JSON.stringify(modules).replaceAll(JSON.stringify(modules.id), JSON.stringify(name));
  writeFileSync(join(folder, "hostile.jsonl"), `${text}\n`);
  write("hostile_record", ["predict", join(folder, "hostile.jsonl")]);
  const trace = JSON.parse(readFileSync(join(source, "tests/corpus/kineto/small.json"), "utf8"));
  for (const event of trace.traceEvents) if (event.ph === "X") event.name = `${name} ${event.name}`;
  writeFileSync(join(folder, "hostile_trace.json"), JSON.stringify(trace));
  write("hostile_trace", ["trace", join(folder, "hostile_trace.json")]);
  for (const file of ["hostile_record", "hostile_trace"]) {
    const page = await newPage();
    await page.goto(`file://${fileOf(file)}`);
    await page.waitForTimeout(200);
    const found = await page.evaluate(() => ({caught: window.caught, images: document.querySelectorAll("img").length, text: document.body.innerText}));
    check(found.caught === undefined && found.images === 0, `${file}: nothing of a name is run or drawn`, found);
    check(found.text.includes("</script><img src=x"), `${file}: the name is there as text`);
    await page.context().close();
  }
}

await browser.close();
finish();
