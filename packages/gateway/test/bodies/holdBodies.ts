import { Agent, request } from "node:http"
import { assert } from "@effect/vitest"
import type { InferencePath } from "@seatrial/domain"
import { Effect } from "effect"
import { Refusal } from "../../src/refusals.ts"
import { isEndpoint } from "../../src/vocabulary/endpoints.ts"
import { speaks } from "../fakeAnswers.ts"
import { makeEngine } from "../fakeEngine.ts"
import { apiKey, makeStage } from "../stage.ts"
import { capabilitiesOf, everything, outcomeOf, targetWith } from "../vocabularyTargets.ts"
import { issueOf } from "./forwardable.ts"
import { type MutatedBody, mutatedBodies } from "./mutated.ts"

/** Bodies generated from one seed. */
const batch = 1_000

const hold = (seed: number, path: InferencePath, body: string) => assert.strictEqual(issueOf(path, body), null, `seed ${seed}: ${path} ${body}`)

const post = (agent: Agent, address: string, { path, text }: MutatedBody) =>
  Effect.callback<number>((resume) => {
    const outgoing = request(`${address}${path}`, { method: "POST", agent, headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` } })
    outgoing.on("error", () => resume(Effect.succeed(0)))
    outgoing.on("response", (incoming) => incoming.on("end", () => resume(Effect.succeed(incoming.statusCode ?? 0))).resume())
    outgoing.end(text)
  })

/**
 * Sends the mutated bodies of a seed through a gateway. Each must be answered below 500, and the engine must get only
 * known fields. Returns how many were answered and how many reached the engine.
 */
export const holdBodies = Effect.fnUntraced(function* (seed: number, count: number) {
  const engine = yield* makeEngine(speaks(["a"]))
  const { address, world } = yield* makeStage([engine.url])
  world.route = { ...world.route, capabilities: capabilitiesOf(everything) }
  const agent = yield* Effect.acquireRelease(
    Effect.sync(() => new Agent({ keepAlive: true, maxSockets: 4 })),
    (open) => Effect.sync(() => open.destroy())
  )
  let reached = 0
  for (let done = 0; done < count; done += batch) {
    yield* Effect.forEach(
      mutatedBodies(seed + done, Math.min(batch, count - done)),
      (body) =>
        Effect.map(post(agent, address, body), (status) =>
          assert.isTrue(status >= 200 && status < 500, `seed ${seed + done}: ${status} for ${body.path} ${body.text.slice(0, 2_000)}`)
        ),
      { concurrency: 4, discard: true }
    )
    for (const { body, request: incoming } of engine.calls.splice(0)) {
      reached++
      const path = incoming.url ?? ""
      assert.isTrue(isEndpoint(path), path)
      if (isEndpoint(path)) hold(seed + done, path, body)
    }
    world.recorded.splice(0)
  }
  return reached
})

/** The same without a network. */
export const holdChecks = (seed: number, count: number): number => {
  let taken = 0
  const target = targetWith({ cacheSalt: "s".repeat(43) })
  for (const { path, text } of mutatedBodies(seed, count)) {
    const outcome = outcomeOf(text, path, target)
    if (outcome instanceof Refusal) {
      assert.isTrue(outcome.status >= 400 && outcome.status < 500, `seed ${seed}: ${outcome.status} for ${path} ${text.slice(0, 2_000)}`)
      continue
    }
    taken++
    if (outcome.model === "acme/tiny") hold(seed, path, outcome.engineBody)
  }
  return taken
}
