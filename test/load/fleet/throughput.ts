import { availableParallelism } from "node:os"
import { Effect } from "effect"
import { compare, httpRequest } from "../compare.ts"
import { figureOf, show, table } from "../figures.ts"
import type { Lab } from "../Lab.ts"
import { startLoadGenerator } from "../LoadGenerator.ts"
import { makeRoute } from "../makeDeployments.ts"
import { startGateway } from "../startGateway.ts"
import { startEngines } from "./startEngines.ts"

const sizes = [1, 2, 4, 8]
/** Requests that an engine processes at a time, and milliseconds for each. */
const [slots, millis] = [8, 100]
const rounds = 5

/** Requests of callers with different prefixes, which prefer different engines. */
const requestsOf = (key: string, model: string): readonly [string, ...ReadonlyArray<string>] => {
  const requestOf = (caller: number) =>
    httpRequest(
      "POST",
      "/v1/chat/completions",
      key,
      JSON.stringify({ model, messages: [{ role: "user", content: `Caller ${caller}: what does the crew do?` }] })
    )
  return [requestOf(0), ...Array.from({ length: 255 }, (_, index) => requestOf(index + 1))]
}

/** Answers a second of 1 to 8 engines behind one gateway, and that number as a share of as many times one engine's. */
export const throughput = Effect.fnUntraced(function* (lab: Lab) {
  const models = yield* Effect.forEach(sizes, (count) =>
    Effect.flatMap(startEngines({ count, slots, millis, cacheTokens: 0 }), (urls) => makeRoute(lab, { number: 10 + count, urls }))
  )
  const gateway = yield* startGateway(lab, {
    name: "Seatrial's gateway",
    file: "packages/gateway/src/main.ts",
    settings: { GATEWAY_ENGINE_CONCURRENCY: String(slots) }
  })
  const generate = yield* startLoadGenerator(Math.min(1, availableParallelism() - 1))
  const subjects = models.map((model, index) => ({
    program: gateway,
    // Twice as many callers as slots, so that engines never wait for a request.
    plan: { connections: 2 * slots * (sizes[index] ?? 1), warmSeconds: 1, seconds: 3, requests: requestsOf(lab.key, model) }
  }))
  const runs = yield* compare(generate, rounds, subjects)
  const single = runs[0] ?? []
  const rows = runs.map((each, index) => {
    const count = sizes[index] ?? 1
    const shares = each.map(({ perSecond }, round) => perSecond / (count * (single[round]?.perSecond ?? Number.NaN)))
    const used = each.map(({ perSecond, processorMicros }) => (perSecond * (processorMicros ?? Number.NaN)) / 1e6)
    return [`${count}`, show(figureOf(each.map(({ perSecond }) => perSecond))), show(figureOf(shares), 3), show(figureOf(used), 2)]
  })
  return `Stand-ins that take ${millis} ms for a request and process ${slots} at a time (${(slots * 1_000) / millis} answers a second each), with ${2 * slots} callers for each engine. The target is 0.95 until the
gateway's core is full.

${table(["engines", "answers/s", "of as many times one", "gateway's cores in use"], rows)}`
})
