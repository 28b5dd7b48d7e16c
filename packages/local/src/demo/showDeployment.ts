import { setTimeout as pause } from "node:timers/promises"
import { DeploymentDetail, DeploymentId, isFinished } from "@seatrial/domain"
import { layerKubeClient } from "@seatrial/kube"
import { Config, Effect, Option, Schema } from "effect"
import { awaitTrialFigures } from "./awaitTrialFigures.ts"
import { DemoError } from "./DemoError.ts"
import type { Product } from "./Product.ts"
import { bold, bytes, dim, green, heading, LiveLine, red, row, say, seconds } from "./Screen.ts"

/** Follows a run to its end and prints one line per phase with its duration. */
export const showTimeline = async (product: Product, id: string, signal: AbortSignal): Promise<DeploymentDetail> => {
  const live = new LiveLine()
  let printed = 0
  for (;;) {
    const { body } = await product.call("phases", "GET", `/v1/org/deployments/${id}`, DeploymentDetail)
    const { phases } = body
    for (; printed < phases.length - 1; printed++) live.finish(line(phases, printed))
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

/** Prints the results of the trial: checks, memory measured against the estimate, and benchmark. */
export const showTrial = async (
  product: Product,
  detail: DeploymentDetail,
  estimate: { readonly weights: number; readonly kvCache: number },
  signal: AbortSignal
): Promise<void> => {
  heading("Its trial: checks, memory, benchmark")
  for (const check of detail.checks) say(`   ${check.passed ? green("pass") : red("FAIL")} ${check.name.padEnd(22)} ${dim(check.detail ?? "")}`)
  const figures = awaitTrialFigures(Schema.decodeUnknownSync(DeploymentId)(detail.id)).pipe(
    Effect.provide(layerKubeClient({ kubeconfig: Config.succeed(product.state.kubeconfig) }))
  )
  const result = await Effect.runPromise(figures, { signal })
  if (Option.isNone(result))
    throw new DemoError("trial", "The custom resource did not show the figures of the trial within one minute.", `Read ${product.log}.`)
  const { benchmark, measured } = result.value
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
  if (benchmark.missing !== undefined) row("void", `${benchmark.missing}: this machine had too little capacity left for the load generator`)
  say(dim("   These are figures of the reference engine on simulated GPUs. They do not apply to real GPUs."))
}
