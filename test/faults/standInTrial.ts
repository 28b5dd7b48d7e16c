import { type StartWork, startWork } from "@seatrial/operator"
import { Runs } from "@seatrial/store"
import { benchmark, capacityRow, checks, measured, speedRow } from "@seatrial/store/testing"
import { Effect, Schedule } from "effect"
import { keepVerdict } from "../../packages/operator/src/gather/BootVerdicts.ts"
import { type EngineWork, needsEngine } from "../../packages/operator/src/observation/work.ts"
import { simulatedProduct } from "../cluster/simulatedHostClass.ts"

const settings = { failedCapability: "withdraw", fetchImage: "none", namespace: "seatrial", pullSecrets: [], weightsClaim: "none" } as const

/** Answers from the lane's own GPUs: each later start of an engine is compared with them. */
const comparable = { ...checks, fingerprint_card: `${simulatedProduct} x1` }

const untilRecorded = <A>(write: Effect.Effect<A>) =>
  Effect.sandbox(write).pipe(Effect.retry(Schedule.spaced("100 millis")), Effect.catch(Effect.failCause), Effect.asVoid)

interface StandInTrial {
  readonly verified: (url: string) => void
  /** How long the comparison of a start takes. */
  readonly comparison: Effect.Effect<void>
}

/**
 * Reads the repository as usual. Only records the trial as passed, because no stand-in engine could pass it. `verified` is
 * called with the address of each engine that passed its trial, or whose start was compared.
 */
export const standInTrial =
  ({ comparison, verified }: StandInTrial): StartWork =>
  (gathered, seen, kind) => {
    if (!needsEngine(kind)) return startWork(settings)(gathered, seen, kind)
    const { id, orgId } = gathered.run
    return Effect.gen(function* () {
      const runs = yield* Runs
      yield* kind === "boot" ? comparison : Effect.sleep("10 millis")
      if ((kind === "boot" || kind === "benchmarking") && seen.pod?.url != null) verified(seen.pod.url)
      if (kind === "boot") return seen.pod === null ? undefined : keepVerdict(gathered.bootVerdicts, seen.pod, { outcome: "same", message: "", at: 0 })
      const results: Record<Exclude<EngineWork, "boot">, Effect.Effect<boolean>> = {
        fidelity: Effect.die("no adapter is deployed here"),
        checking: runs.recordChecks(id, orgId, comparable),
        comparing: runs.recordChecks(id, orgId, comparable),
        measuring: runs.recordMeasured(id, orgId, measured, capacityRow),
        benchmarking: runs.recordBenchmark(id, orgId, benchmark, speedRow)
      }
      yield* untilRecorded(results[kind])
    })
  }
