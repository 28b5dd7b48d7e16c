import { Schema } from "effect"
import { type Answer, HttpConnection } from "./HttpConnection.ts"
import { LoadPlan, type LoadResult } from "./LoadPlan.ts"

// The load generator: a separate process that runs one plan per message and replies with the result.

/** Maximum number of responses of a run. The run ends when it is reached. */
const most = 1_000_000

const percentiles = (sorted: Float64Array): { readonly p50: number; readonly p99: number } => {
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return { p50: at(0.5), p99: at(0.99) }
}

const salt = crypto.randomUUID().replaceAll("-", "")
let sent = 0

/** Unique text of the given length. */
const uniqueText = (length: number): string => `${salt}${String(sent++).padStart(9, "0")}`.slice(-length)

const run = async (plan: LoadPlan): Promise<LoadResult> => {
  const { status: right = 200, unique } = plan
  const requests = plan.requests.map((request) => Buffer.from(request))
  const latencies = new Float64Array(most)
  const first = new Float64Array(most)
  const delays = plan.stamped === true ? new Float64Array(most) : undefined
  let stamps = 0
  let turn = 0
  let answers = 0
  let all = 0
  let failures = 0
  const from = performance.now() + plan.warmSeconds * 1_000
  const until = from + plan.seconds * 1_000

  const count = ({ endedAt, firstBodyByteAt, sentAt, status }: Answer) => {
    all++
    if (status !== right) failures++
    if (endedAt < from || endedAt > until) return
    latencies[answers] = endedAt - sentAt
    first[answers] = firstBodyByteAt - sentAt
    answers++
  }
  const readStamps = (chunk: Buffer) => {
    const now = Number(process.hrtime.bigint() / 1_000n)
    if (delays === undefined || performance.now() < from || performance.now() > until) return
    for (const [, sentAt] of chunk.toString("latin1").matchAll(/"content":" (\d+)"/g)) {
      if (stamps < most) delays[stamps++] = (now - Number(sentAt)) / 1_000
    }
  }
  const client = async () => {
    const connection = new HttpConnection(plan.host, plan.port, delays === undefined ? undefined : readStamps)
    while (performance.now() < until && answers < most && failures < 1_000) {
      const at = turn++ % requests.length
      const request = unique === undefined ? requests[at] : Buffer.from(plan.requests[at]?.replaceAll(unique, uniqueText(unique.length)) ?? "")
      if (request === undefined) break
      try {
        count(await connection.send(request))
      } catch {
        failures++
      }
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: plan.connections }, client))
  return {
    answers,
    all,
    failures,
    perSecond: answers / plan.seconds,
    whole: percentiles(latencies.subarray(0, answers).sort()),
    first: percentiles(first.subarray(0, answers).sort()),
    frames: delays === undefined ? null : percentiles(delays.subarray(0, stamps).sort())
  }
}

const decodePlan = Schema.decodeUnknownSync(LoadPlan)

process.on("message", (message) => {
  run(decodePlan(message)).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      process.stderr.write(`${error}\n`)
      process.exit(1)
    }
  )
})
process.once("disconnect", () => process.exit(0))
