import { assert } from "@effect/vitest"
import { Cause, Effect, Exit, Scope, Semaphore } from "effect"
import type { Caller } from "../e2e/Caller.ts"
import type { FailedRequest } from "./askThroughout.ts"
import { type GatewayOf, startGateway } from "./startGateway.ts"

/** Starts a stream, and returns the ID of the request with its first byte. The rest is not read. */
const startStream = (address: string, key: string, model: string) =>
  Effect.tryPromise(async () => {
    const response = await fetch(`${address}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, stream: true, max_tokens: 400, messages: [{ role: "user", content: "What does a sea trial show?" }] })
    })
    return response.headers.get("x-request-id")
  }).pipe(Effect.orElseSucceed(() => null))

/**
 * Two gateways, as processes. `caller` calls the active one. `kill` ends that one with SIGKILL during a stream and switches
 * to the other one. `replace` starts another process in its place.
 */
export const openGateways = Effect.fnUntraced(function* (system: GatewayOf, model: string) {
  const scope = yield* Effect.scope
  const lock = yield* Semaphore.make(1)
  let [active, spare] = yield* Effect.all([startGateway(system), startGateway(system)], { concurrency: "unbounded" })
  /** The deaths: Unix milliseconds, and the ID of the streamed request. */
  const deaths: Array<{ readonly at: number; readonly lost: string | null }> = []
  const dead = new Set<typeof active>()
  /** Calls that an error answered, and those without an answer although their gateway lived. */
  const faults: Array<string> = []
  const call = (...input: Parameters<Caller["call"]>) =>
    Effect.suspend(() => {
      const used = active
      return Effect.onExit(used.caller.call(...input), (exit) =>
        Effect.sync(() => {
          if (Exit.isSuccess(exit) && exit.value.status !== 200) faults.push(`HTTP ${exit.value.status}: ${exit.value.text}`)
          if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause) && !dead.has(used)) faults.push(Cause.pretty(exit.cause))
        })
      )
    })
  const ensureSpare = Effect.gen(function* () {
    if (spare === active) spare = yield* startGateway(system)
  }).pipe(Effect.provideService(Scope.Scope, scope))
  const kill = Effect.gen(function* () {
    yield* ensureSpare
    const victim = active
    const lost = yield* startStream(victim.address, system.apiKey, model)
    active = spare
    deaths.push({ at: Date.now(), lost })
    dead.add(victim)
    yield* victim.program.signal("SIGKILL")
    yield* victim.program.exited
  })
  return {
    caller: { ...system.caller, call },
    kill: lock.withPermits(1)(kill),
    replace: lock.withPermits(1)(ensureSpare),
    deaths: (): typeof deaths => deaths,
    /** Asserts that only requests failed that were open at a gateway when it died. */
    assertFailures: (failures: ReadonlyArray<FailedRequest>) => {
      assert.deepStrictEqual(faults, [])
      const wasOpen = ({ endedAt, startedAt }: FailedRequest) => deaths.some(({ at }) => startedAt <= at && at <= endedAt)
      assert.deepStrictEqual(
        failures.filter((request) => !wasOpen(request)),
        []
      )
    }
  }
})
export type Gateways = Effect.Success<ReturnType<typeof openGateways>>
