import { readFileSync } from "node:fs"
import { request } from "node:http"
import { setTimeout as pause } from "node:timers/promises"
import { DeploymentDetail, isFinished } from "@seatrial/domain"
import { Option, Schema } from "effect"
import { parse } from "yaml"
import { DemoError } from "./DemoError.ts"
import type { Product } from "./Product.ts"
import { bold, bytes, dim, green, heading, LiveLine, red, row, say, seconds } from "./Screen.ts"

/** Follows a run to its end, a line for each phase with the time that it took. */
export const showTimeline = async (product: Product, id: string, signal: AbortSignal): Promise<DeploymentDetail> => {
  const live = new LiveLine()
  let shown = 0
  for (;;) {
    const { body } = await product.call("phases", "GET", `/v1/org/deployments/${id}`, DeploymentDetail)
    const { phases } = body
    for (; shown < phases.length - 1; shown++) live.finish(line(phases, shown))
    const last = phases.at(-1)
    if (isFinished(body.status) && last !== undefined) {
      live.finish(
        `${body.status === "activated" ? green(bold(last.status)) : red(bold(last.status))}${body.failure_detail === null ? "" : ` ${body.failure_detail}`}`
      )
      if (body.status !== "activated")
        throw new DemoError("phases", `The deployment ended as ${body.status}: ${body.failure_detail}`, "The reason above says what to do.")
      return body
    }
    if (last !== undefined) live.update(`${last.status} ${dim(seconds(Date.now() - Date.parse(last.at)))}`)
    if (signal.aborted) throw new DemoError("phases", "It was stopped.", "Start it again with npm run demo.")
    await pause(150)
  }
}

const line = (phases: DeploymentDetail["phases"], index: number): string => {
  const [phase, next] = [phases[index], phases[index + 1]]
  return phase === undefined || next === undefined ? "" : `${phase.status.padEnd(14)} ${dim(seconds(Date.parse(next.at) - Date.parse(phase.at)).padStart(8))}`
}

const Kubeconfig = Schema.Struct({
  clusters: Schema.NonEmptyArray(Schema.Struct({ cluster: Schema.Struct({ server: Schema.String }) })),
  users: Schema.NonEmptyArray(Schema.Struct({ user: Schema.Struct({ token: Schema.String }) }))
})

const CustomResource = Schema.fromJsonString(
  Schema.Struct({
    status: Schema.Struct({
      measured: Schema.Struct({ weightsBytes: Schema.Int, kvCacheBytes: Schema.Int, kvCacheTokens: Schema.Int }),
      benchmark: Schema.Struct({
        inputTokens: Schema.Int,
        outputTokens: Schema.Int,
        steps: Schema.Array(
          Schema.Struct({
            concurrency: Schema.Int,
            requests: Schema.Int,
            outputTokensPerSecond: Schema.Finite,
            ttftMsP50: Schema.optionalKey(Schema.Finite)
          })
        ),
        missing: Schema.optionalKey(Schema.String)
      })
    })
  })
)

/** The custom resource, over the Kubernetes API as kubectl would read it. */
const readCustomResource = (product: Product, id: string): Promise<string> => {
  const { clusters, users } = Schema.decodeUnknownSync(Kubeconfig)(parse(readFileSync(product.state.kubeconfig, "utf8")))
  const path = `/apis/seatrial.dev/v1alpha1/namespaces/seatrial/modeldeployments/${id.replace("_", "-")}`
  return new Promise((resolve, reject) => {
    request(`${clusters[0].cluster.server}${path}`, { headers: { authorization: `Bearer ${users[0].user.token}` } }, (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk
      })
      response.on("end", () => resolve(text))
    })
      .on("error", reject)
      .end()
  })
}

/** What the trial showed: checks, memory measured against the estimate, benchmark. */
export const showTrial = async (
  product: Product,
  detail: DeploymentDetail,
  estimate: { readonly weights: number; readonly kvCache: number }
): Promise<void> => {
  heading("Its trial: checks, memory, benchmark")
  for (const check of detail.checks) say(`   ${check.passed ? green("pass") : red("FAIL")} ${check.name.padEnd(22)} ${dim(check.detail ?? "")}`)
  const found = Schema.decodeUnknownOption(CustomResource)(await readCustomResource(product, detail.id))
  if (Option.isNone(found))
    throw new DemoError("trial", "The custom resource tells no measured memory or no benchmark.", "This is a fault of Seatrial: please report it.")
  const { benchmark, measured } = found.value.status
  say()
  say(`   ${dim("memory".padEnd(16))} ${"measured".padStart(12)} ${"estimated".padStart(12)}`)
  say(`   ${dim("weights".padEnd(16))} ${bytes(measured.weightsBytes).padStart(12)} ${bytes(estimate.weights).padStart(12)}`)
  say(`   ${dim("KV cache".padEnd(16))} ${bytes(measured.kvCacheBytes).padStart(12)} ${bytes(estimate.kvCache).padStart(12)}`)
  row("KV cache holds", `${measured.kvCacheTokens} tokens`)
  say()
  for (const step of benchmark.steps) {
    const first = step.ttftMsP50 === undefined ? "" : `, first token after ${step.ttftMsP50.toFixed(1)} ms (p50)`
    row(
      `benchmark, c=${step.concurrency}`,
      `${step.outputTokensPerSecond.toFixed(0)} tokens/s${first}, ${step.requests} requests of ${benchmark.inputTokens} + ${benchmark.outputTokens} tokens`
    )
  }
  if (benchmark.missing !== undefined) row("void", `${benchmark.missing}: this machine had too little left for the load generator beside the engine`)
  say(dim("   Figures of the reference engine on simulated GPUs: real for it, and for nothing else."))
}
