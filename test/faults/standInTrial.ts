import { type StartWork, startWork } from "@seatrial/operator"
import { Runs } from "@seatrial/store"
import { Effect, Schedule } from "effect"

const namespace = "seatrial"

const step = {
  concurrency: 1,
  requests: 10,
  errors: 0,
  seconds: 1,
  ttft_ms_p50: 1,
  ttft_ms_p90: null,
  tpot_ms_p50: 1,
  tpot_ms_p90: null,
  output_tokens_per_s: 100
}
const report = {
  suite: "seatrial-core",
  suite_version: 0,
  passed: true,
  checks: [{ name: "usage_exact", passed: true }],
  fingerprints: [],
  fingerprint_card: null
}
const measured = { weights_bytes: 1_000, kv_cache_bytes: 1_000, kv_cache_tokens: 100_000, overhead_bytes: 0, max_concurrency: 4, load_seconds: 1 }
const benchmark = { suite: "seatrial-bench", suite_version: 1, input_tokens: 128, output_tokens: 32, seed: 1, steps: [step] }

const untilRecorded = <A>(write: Effect.Effect<A>) =>
  Effect.sandbox(write).pipe(Effect.retry(Schedule.spaced("100 millis")), Effect.catch(Effect.failCause), Effect.asVoid)

/** The repository is read for real; of the trial, which no stand-in engine could pass, only the record is made. */
export const standInTrial: StartWork = (gathered, seen, kind) => {
  if (kind === "screening") return startWork(namespace)(gathered, seen, kind)
  const { id, orgId } = gathered.run
  return Effect.gen(function* () {
    const runs = yield* Runs
    yield* Effect.sleep("10 millis")
    if (kind === "checking") yield* untilRecorded(runs.recordChecks(id, orgId, report))
    else if (kind === "measuring") yield* untilRecorded(runs.recordMeasured(id, orgId, measured))
    else yield* untilRecorded(runs.recordBenchmark(id, orgId, benchmark))
  })
}
