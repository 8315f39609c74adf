// The screens of `forerun serve` in a browser: each opens on an answer, every control changes it, links hold all settings.
import {readFileSync, writeFileSync} from "node:fs";
import {join} from "node:path";
import {axe, browser, check, downloaded, finish, folder, forerun, kSizes, layout, newPage, serve, source} from "./browser.mjs";

const program = process.argv[2];
const server = serve(program);
const {address, link} = await server.told;

async function open(place, options = {}) {
  const page = await newPage({...options, own: address});
  await page.goto(link);
  await page.goto("about:blank").catch(() => undefined);
  await page.goto(`${address}/#${place}`);
  return page;
}

const title = (page) => page.locator("h1").first().textContent();

// Until the verdict is another one than before.
async function changed(page, before, what) {
  const after = await page.waitForFunction((old) => {
    const now = document.querySelector("h1")?.textContent ?? "";
    return now !== old && now !== "" && !document.querySelector(".answer.busy") ? now : false;
  }, before, {timeout: 20000}).then((handle) => handle.jsonValue(), () => before);
  check(after !== before, what, before);
  return after;
}

async function answered(page) {
  await page.waitForFunction(() => document.querySelector("h1") && !document.querySelector(".answer.busy"), undefined, {timeout: 30000});
  await page.waitForTimeout(500);
}

// By the words above it.
const control = (page, name) => page.locator("label", {has: page.locator(`span:text-is("${name}")`)}).locator("input, select").first();

const close = (page) => page.context().close();

const screens = ["forecast", "gpus", "memory", "trace", "whatif", "scale", "cluster", "trust"];

// Every screen opens on an answer, wide and narrow, light and dark, and axe finds nothing.
for (const size of kSizes) {
  for (const scheme of ["light", "dark"]) {
    for (const name of screens) {
      const page = await open(name, {size, scheme});
      await answered(page);
      const what = `${name}, ${size.width} px, ${scheme}`;
      await layout(page, what);
      if ((size.width < 500) === (scheme === "dark")) await axe(page, what);
      if (process.env.FORERUN_SHOTS) await page.screenshot({path: join(process.env.FORERUN_SHOTS, `screen_${name}.${size.width}.${scheme}.png`), fullPage: true});
      await close(page);
    }
  }
}

// Forecast: it opens on resnet50, and says what the program says.
{
  const page = await open("forecast");
  await answered(page);
  const answer = JSON.parse(forerun(program, "predict", "resnet50", "--gpu", "h200", "--batch", "64", "--json"));
  let now = await title(page);
  check(now.includes("resnet50") && now.includes(answer.iter_ms.toPrecision(3)), "it opens on resnet50 on an H200, as the program predicts it", now);
  await page.getByRole("slider", {name: "Batch, slider"}).focus();
  await page.keyboard.press("ArrowRight");
  now = await changed(page, now, "the slider changes the answer");
  await control(page, "Batch").fill("128");
  now = await changed(page, now, "so does a number");
  await control(page, "GPU").selectOption({label: "NVIDIA L4"});
  now = await changed(page, now, "so does a GPU");
  await control(page, "Precision").selectOption("amp_bf16");
  now = await changed(page, now, "so does a precision");
  await control(page, "torch.compile").selectOption("reduce-overhead");
  await page.getByText("Under torch.compile").first().waitFor({timeout: 20000});
  check((await page.locator(".facts").first().textContent()).includes("reduce-overhead"), "torch.compile stands beside it");
  await control(page, "torch.compile").selectOption("");
  await control(page, "Model").fill("gpt2_small");
  now = await changed(page, now, "so does a model");
  await page.getByText("More", {exact: true}).click();
  await control(page, "Checkpointing").selectOption("block");
  now = await changed(page, now, "so does checkpointing");
  await control(page, "Parameters").fill("length=256");
  await page.keyboard.press("Enter");
  now = await changed(page, now, "so do parameters of the family");
  const other = await newPage({own: address});
  await other.goto(link);
  await other.goto(await page.evaluate(() => location.href));
  await answered(other);
  check((await title(other)) === now, "the address holds all settings", `${await title(other)} | ${now}`);
  await close(other);
  await control(page, "Model").fill("resnet5");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").first().waitFor();
  const fault = await page.getByRole("alert").first().textContent();
  check(/resnet5/.test(fault) && /resnet50/.test(fault), "a wrong name is answered with the nearest", fault);
  await control(page, "Model").fill("resnet18");
  await changed(page, now, "and a right one clears it");
  await page.getByRole("button", {name: "Keep this forecast"}).click();
  await page.getByRole("button", {name: "Kept"}).waitFor();
  await control(page, "Batch").fill("32");
  await answered(page);
  await page.getByRole("button", {name: "Keep this forecast"}).click();
  await page.getByRole("button", {name: "Kept"}).waitFor();
  await close(page);
}

// Which GPU: prices of one's own, a table that sorts, and a GPU that opens as a forecast.
{
  const page = await open("gpus");
  await answered(page);
  await control(page, "Your prices an hour").fill("h200=3, a100=1.5, l4=0.6");
  await page.keyboard.press("Enter");
  await page.getByText("Time and cost", {exact: true}).waitFor({timeout: 20000});
  const png = await downloaded(page, page.getByRole("button", {name: "Save Time and cost as PNG"}));
  check(png.bytes.length > 3000, "the Pareto chart is saved", png.name);
  await control(page, "Samples of the run").fill("100M");
  await page.keyboard.press("Enter");
  await page.getByText("Time and cost of the whole run").waitFor({timeout: 20000});
  await page.getByRole("button", {name: "L4", exact: true}).click();
  await answered(page);
  check((await page.evaluate(() => location.hash)).startsWith("#forecast") && (await title(page)).includes("L4"), "a GPU opens as a forecast", await title(page));
  await close(page);
}

// Memory: a button that applies what would save memory.
{
  const page = await open("memory?model=gpt2_small&gpu=a100&batch=16");
  await answered(page);
  await page.getByRole("button", {name: "Apply bf16 mixed precision"}).click({timeout: 30000});
  await page.locator(".before").waitFor();
  await answered(page);
  check((await page.evaluate(() => location.hash)).includes("precision=amp_bf16"), "what is applied is in the address");
  check(/less/.test(await page.locator(".before").textContent()), "before and after are told", await page.locator(".before").textContent());
  await close(page);
}

// Trace: files that are chosen, with hostile names in them; then what-if of the same upload.
{
  const page = await open("trace");
  await page.locator('input[type="file"]').setInputFiles(join(source, "data/h200/whatif_traces/vgg19.base.trace.json.zst"));
  await page.getByRole("img", {name: /Timeline/}).waitFor({timeout: 60000});
  await answered(page);
  await layout(page, "a trace that was dropped");
  await axe(page, "a trace that was dropped");
  const chart = page.getByRole("img", {name: /Timeline/});
  const asked = page.waitForRequest((request) => request.url().includes("/timeline/") && request.url().includes("from="));
  await chart.focus();
  for (const key of ["+", "+", "+"]) await page.keyboard.press(key);
  check(Boolean(await asked), "zooming in asks for more detail");
  await page.getByRole("link", {name: "What would make it faster?"}).click();
  await answered(page);
  check(/shorter|nothing/.test(await title(page)), "what-if of an uploaded trace", await title(page));
  await close(page);
  const trace = JSON.parse(readFileSync(join(source, "tests/corpus/kineto/small.json"), "utf8"));
  for (const event of trace.traceEvents) if (event.ph === "X") event.name = `</script><img src=x onerror="window.caught=1">${event.name}`;
  writeFileSync(join(folder, "<img src=x onerror=alert(1)>.json"), JSON.stringify(trace));
  const hostile = await open("trace");
  await hostile.locator('input[type="file"]').setInputFiles(join(folder, "<img src=x onerror=alert(1)>.json"));
  await hostile.getByRole("img", {name: /Timeline/}).waitFor({timeout: 60000});
  check(await hostile.evaluate(() => window.caught === undefined && document.querySelectorAll("img").length === 0), "names of a trace stay text");
  await hostile.getByLabel("Choose traces", {exact: true}).setInputFiles(join(source, "LICENSE"));
  await hostile.getByRole("alert").first().waitFor({timeout: 20000});
  check((await hostile.getByRole("alert").first().textContent()).length > 20, "a file that is no trace is refused in words", await hostile.getByRole("alert").first().textContent());
  await close(hostile);
}

// Trace: two runs side by side, two ranks, and Perfetto, which is asked for nothing before a click.
{
  const traces = ["vgg19", "resnet50"].map((name) => join(source, `data/h200/whatif_traces/${name}.base.trace.json.zst`));
  const page = await open("trace");
  await page.locator('input[type="file"]').setInputFiles(traces);
  await page.getByRole("img", {name: /Timeline/}).waitFor({timeout: 60000});
  await answered(page);
  const of = control(page, "Timeline of");
  check(await of.locator("option").count() === 2, "each rank has a timeline");
  const other = page.waitForRequest((request) => request.url().includes("/timeline/"));
  await of.selectOption({index: 1});
  check((await other).url().includes(await of.inputValue()), "choosing a rank draws its timeline");
  await page.getByRole("button", {name: "Compare these two files"}).click();
  await page.getByRole("img", {name: /Timeline after/}).waitFor({timeout: 60000});
  await answered(page);
  const now = await title(page);
  const changes = JSON.parse(forerun(program, "trace", traces[0], "--compare", traces[1], "--json")).changes;
  check(now.includes(changes.step_before_ms.toPrecision(3)) && now.includes(changes.step_after_ms.toPrecision(3)), "two traces are compared, as the program compares them", now);
  for (const name of ["Overview", "Kernels", "Ops"]) check(await page.getByRole("region", {name, exact: true}).locator("tbody tr").count() > 3, `${name} stand side by side`);
  await layout(page, "two traces");
  await axe(page, "two traces");
  if (process.env.FORERUN_SHOTS) await page.screenshot({path: join(process.env.FORERUN_SHOTS, "screen_trace_compare.png"), fullPage: true});
  await page.getByRole("button", {name: "Swap before and after"}).click();
  await changed(page, now, "before and after change places");
  await close(page);

  const one = await open("trace");
  await one.locator('input[type="file"]').setInputFiles(join(source, "tests/corpus/kineto/small.json"));
  await one.getByRole("img", {name: /Timeline/}).waitFor({timeout: 60000});
  const got = [];
  // In place of Perfetto's page, which no test may ask: it answers and takes as that one does.
  await one.context().exposeBinding("took", (_, title, bytes) => got.push({title, bytes}));
  await one.context().route("https://ui.perfetto.dev/**", (route) => route.fulfill({contentType: "text/html", body:
    `<script>onmessage = (event) => event.data === "PING" ? event.source.postMessage("PONG", event.origin) : took(event.data.perfetto.title, event.data.perfetto.buffer.byteLength)</script>`}));
  const [window] = await Promise.all([one.context().waitForEvent("page"), one.getByRole("link", {name: /in Perfetto/}).click()]);
  const elsewhere = [];
  window.on("request", (request) => { if (!request.url().startsWith(address)) elsewhere.push(request.url()); });
  await window.getByRole("button", {name: "Open in ui.perfetto.dev"}).waitFor({timeout: 20000});
  await axe(window, "the way to Perfetto");
  check(elsewhere.length === 0, "nothing is asked of Perfetto before a click", elsewhere.join(" "));
  check(await window.evaluate(() => opener === null), "that window has no hold on the page");
  await window.getByRole("button", {name: "Open in ui.perfetto.dev"}).click();
  await window.getByText("Handed over").waitFor({timeout: 30000});
  const size = readFileSync(join(source, "tests/corpus/kineto/small.json")).length;
  for (let wait = 0; wait < 50 && got.length === 0; ++wait) await window.waitForTimeout(100);
  check(got[0]?.title === "small.json" && got[0]?.bytes === size, "Perfetto gets the trace, byte for byte", JSON.stringify(got));
  await close(one);
}

// What-if: several together. Many GPUs: plans. Cluster: policies and a file of jobs.
{
  const page = await open("whatif");
  await answered(page);
  let now = await title(page);
  await page.getByRole("checkbox", {name: "amp", exact: true}).check();
  now = await changed(page, now, "one optimization by itself");
  await page.getByRole("checkbox", {name: "channels_last"}).check();
  now = await changed(page, now, "two together");
  check(now.includes("amp + channels_last"), "they are applied in order", now);
  await close(page);
}
{
  const page = await open("scale");
  await answered(page);
  let now = await title(page);
  await control(page, "Plan").selectOption("dp");
  now = await changed(page, now, "a plan of its own");
  check(await page.getByRole("img", {name: /^Scaling/}).count() === 1, "a scaling curve is drawn");
  await control(page, "Model").fill("resnet50");
  now = await changed(page, now, "another model");
  await close(page);
}
{
  const page = await open("cluster");
  await answered(page);
  const now = await title(page);
  await control(page, "Policies").fill("fifo,easy");
  await page.keyboard.press("Enter");
  await changed(page, now, "other policies");
  await page.getByRole("button", {name: "easy", exact: true}).click();
  check(await page.getByRole("img", {name: /Jobs under easy/}).count() === 1, "the Gantt chart of a policy");
  await control(page, "GPUs").fill("a100=4, v100=8");
  await page.keyboard.press("Enter");
  await page.locator('input[type="file"]').setInputFiles(join(source, "examples/jobs.csv"));
  await page.waitForFunction(() => /40 jobs on a100=4,v100=8/.test(document.querySelector(".verdict p")?.textContent ?? ""), undefined, {timeout: 20000});
  check(true, "a table of jobs that was uploaded");
  await close(page);
}

// History: what was kept, two side by side, a tag, and forgetting.
{
  const page = await open("history");
  await page.getByRole("region", {name: "Kept answers"}).waitFor({timeout: 20000});
  check(await page.getByRole("checkbox").count() >= 2, "what was kept is listed", String(await page.getByRole("checkbox").count()));
  await page.getByRole("checkbox").nth(0).check();
  await page.getByRole("checkbox").nth(1).check();
  await page.getByText("The two compared").waitFor();
  await axe(page, "history");
  await page.getByRole("region", {name: "Kept answers"}).locator("tbody tr").filter({hasText: "predict"}).locator("button").first().click();
  await page.locator(".kept h1").waitFor();
  await control(page, "Add a tag").fill("git=abc");
  await page.keyboard.press("Enter");
  await page.getByText("git=abc").first().waitFor();
  await layout(page, "history");
  await control(page, "It really took, ms").fill("41.5");
  await page.keyboard.press("Enter");
  await page.getByText("noted, see Trust").waitFor();
  const trust = await open("trust");
  await trust.getByRole("region", {name: "Forecast and measurement"}).waitFor({timeout: 20000});
  check((await trust.getByRole("region", {name: "Forecast and measurement"}).textContent()).includes("41.5 ms"), "one's own run stands beside its forecast");
  await close(trust);
  const before = await page.getByRole("checkbox").count();
  await page.getByRole("button", {name: "Forget it"}).click();
  await page.waitForFunction((count) => document.querySelectorAll("input[type=checkbox]").length < count, before, {timeout: 10000});
  check(true, "an answer is forgotten");
  await close(page);
}

await browser.close();
finish();
