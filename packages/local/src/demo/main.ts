import { randomUUID } from "node:crypto"
import { existsSync, readdirSync, rmdirSync, rmSync } from "node:fs"
import { join, relative, resolve } from "node:path"
import { DeploymentOperation } from "@seatrial/domain"
import { Schema } from "effect"
import { DemoError } from "./DemoError.ts"
import { Product } from "./Product.ts"
import { bold, bytes, dim, heading, red, row, say, yellow } from "./Screen.ts"
import { showChat, showRecords } from "./showAnswer.ts"
import { showTimeline, showTrial } from "./showDeployment.ts"

const Fit = Schema.Struct({
  verdict: Schema.String,
  host_class: Schema.String,
  gpu_pool: Schema.String,
  gpu_count: Schema.Int,
  gpu_memory_bytes: Schema.Int,
  weights_bytes: Schema.Int,
  kv_cache_bytes: Schema.Int,
  kv_bytes_per_token: Schema.Int,
  max_context: Schema.Int,
  concurrent_sequences: Schema.Int
})
const Source = Schema.Struct({ repo: Schema.String, commit: Schema.NullOr(Schema.String) })
const Refused = Schema.Struct({
  kind: Schema.Literal("refused"),
  source: Source,
  reason: Schema.Struct({ code: Schema.String, message: Schema.String }),
  remedy: Schema.Struct({ message: Schema.String })
})
const Derived = Schema.Struct({
  kind: Schema.Literal("derived"),
  source: Source,
  architecture: Schema.String,
  dtype: Schema.String,
  serving: Schema.Json,
  fit: Fit
})

const source = (repo: string) => ({ source: { kind: "model_hub", repo } })

const run = async (product: Product, signal: AbortSignal): Promise<void> => {
  row("API and gateway", product.state.address)
  row("Kubernetes", `${relative(process.cwd(), product.state.kubeconfig)} ${dim("(for kubectl)")}`)
  row("model hub", `${product.state.hub} ${dim(process.env.HF_ENDPOINT ? "(HF_ENDPOINT)" : "(sample hub)")}`)
  row("GPUs", `8 on two nodes ${dim("(simulated: the reference engine computes on the CPU)")}`)

  heading("A preview of a model that is too large")
  const { body: refused } = await product.call("refused preview", "POST", "/v1/deployment-previews", Refused, source("seatrial/giant-70b"))
  row("refused", `${yellow(refused.reason.code)}: ${refused.reason.message}`)
  row("remedy", refused.remedy.message)

  heading("A preview of a model that fits")
  const { body: derived } = await product.call("derived preview", "POST", "/v1/deployment-previews", Derived, source("seatrial/tiny-chat"))
  const { fit } = derived
  row("derived", `${derived.source.repo} at commit ${derived.source.commit}`)
  row("model", `${derived.architecture}, ${derived.dtype}, ${bytes(fit.weights_bytes)} of weights`)
  row("fit", `${bold(fit.verdict)} on ${fit.host_class}: ${fit.gpu_count} x ${fit.gpu_pool} with ${bytes(fit.gpu_memory_bytes)}`)
  row("context", `${fit.max_context} tokens, ${fit.concurrent_sequences} sequences at once, ${bytes(fit.kv_bytes_per_token)} a token`)

  heading("Create the deployment")
  const body = { ...source("seatrial/tiny-chat"), serving: derived.serving }
  const key = { "idempotency-key": randomUUID() }
  const { body: deployment, status } = await product.call("create", "POST", "/v1/deployments", DeploymentOperation, body, key)
  row("deployment", `${deployment.id} ${dim(`(${status})`)}`)

  heading("Its phases")
  const detail = await showTimeline(product, deployment.id, signal)
  await showTrial(product, detail, { weights: fit.weights_bytes, kvCache: fit.kv_cache_bytes }, signal)
  const request = await showChat(product, detail.model, "What does a sea trial show?")
  await showRecords(product, request)

  heading("The same create request again, with the same idempotency key")
  const again = await product.call("repeated create", "POST", "/v1/deployments", DeploymentOperation, body, key)
  if (again.body.id !== deployment.id)
    throw new DemoError("repeated create", `It created a second deployment, ${again.body.id}.`, "This is a bug in Seatrial: please report it.")
  row("deployment", `${again.body.id} ${dim(`(${again.status}, replayed: ${again.headers.get("idempotent-replayed")})`)}`)

  heading("Try it yourself")
  say("   npm start                                              start a system that keeps running")
  say("   npx seatrial deploy seatrial/tiny-chat --wait          in another terminal: deploy, follow the phases")
  say("   kubectl --kubeconfig .seatrial/kubeconfig get mdep -A  show it as a Kubernetes resource")
}

const stopped = new AbortController()
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => stopped.abort())
// The reader of the output is gone, so there is nothing left to do.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => stopped.abort())

const explain = (error: unknown): void => {
  const known = error instanceof DemoError ? error : new DemoError("demo", String(error), "This is a bug in Seatrial: please report it.")
  process.stderr.write(`${red(`The step "${known.step}" failed:`)} ${known.message}\n${known.remedy}\n`)
}

const main = async (): Promise<number> => {
  say(bold("Seatrial: from a model hub to a verified, metered answer"))
  heading("Start Postgres, a cluster, a model hub, API, operator and gateway")
  const parent = resolve(process.env.SEATRIAL_STATE || ".seatrial")
  const folder = join(parent, `demo-${process.pid}`)
  const createdParent = !existsSync(parent)
  let code = 1
  let product: Product | undefined
  try {
    product = await Product.start(folder, stopped.signal)
    await Promise.race([
      run(product, stopped.signal),
      new Promise<never>((_, reject) =>
        stopped.signal.addEventListener("abort", () => reject(new DemoError("demo", "It was stopped.", "Start it again with npm run demo.")))
      )
    ])
    code = 0
  } catch (error) {
    code = stopped.signal.aborted ? 130 : 1
    if (code === 1) explain(error)
  } finally {
    await product?.stop()
  }
  // After a failure the folder stays, because the message refers to it.
  if (code === 1) {
    process.stderr.write(`The state folder is kept: ${folder}\n`)
    return code
  }
  rmSync(folder, { recursive: true, force: true })
  // Another system may use the same parent folder.
  if (createdParent && existsSync(parent) && readdirSync(parent).length === 0) rmdirSync(parent)
  return code
}

process.exitCode = await main()
