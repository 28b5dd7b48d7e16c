import { Effect, Scope, Semaphore } from "effect"
import type { Caller } from "../e2e/Caller.ts"
import { type GatewayOf, startGateway } from "./startGateway.ts"

/** Starts a stream, and returns the ID of the request with its first byte. The rest is not read. */
const startStream = (address: string, key: string, model: string) =>
  Effect.promise(async () => {
    const response = await fetch(`${address}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, stream: true, max_tokens: 400, messages: [{ role: "user", content: "What does a sea trial show?" }] })
    })
    return response.headers.get("x-request-id")
  })

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
  const caller = { ...system.caller, call: (...input: Parameters<Caller["call"]>) => active.caller.call(...input) }
  const prepared = Effect.gen(function* () {
    if (spare === active) spare = yield* startGateway(system)
  }).pipe(Effect.provideService(Scope.Scope, scope))
  const kill = Effect.gen(function* () {
    yield* prepared
    const victim = active
    const lost = yield* startStream(victim.address, system.apiKey, model)
    active = spare
    deaths.push({ at: Date.now(), lost })
    yield* victim.program.signal("SIGKILL")
    yield* victim.program.exited
  })
  return {
    caller,
    kill: lock.withPermits(1)(kill),
    replace: lock.withPermits(1)(prepared),
    deaths: (): typeof deaths => deaths,
    /** Whether a request was open when a gateway died. */
    wasOpen: ({ endedAt, startedAt }: { readonly startedAt: number; readonly endedAt: number }) => deaths.some(({ at }) => startedAt <= at && at <= endedAt)
  }
})
export type Gateways = Effect.Success<ReturnType<typeof openGateways>>
