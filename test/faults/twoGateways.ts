import { Effect } from "effect"
import { makeCaller } from "../e2e/Caller.ts"
import { startProgram } from "../e2e/ChildProgram.ts"
import type { Lane } from "./Lane.ts"

const startGateway = Effect.fnUntraced(function* (lane: Lane) {
  const program = yield* startProgram(["packages/gateway/src/main.ts"], {
    DATABASE_URL: lane.product,
    DATABASE_ROLE: "seatrial_gateway",
    SEATRIAL_ENCRYPTION_KEY: lane.state.encryption_key,
    GATEWAY_HOST: "127.0.0.1",
    GATEWAY_PORT: "0",
    GATEWAY_DRAIN_SECONDS: "0"
  })
  const [, address] = yield* program.logged(/gateway listens on ([^"\s]+)/)
  return { program, address: `http://${address}`, caller: makeCaller(`http://${address}`, lane.state.api_key) }
})

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
 * Two gateways, as processes. `caller` calls the active one. `kill` ends that one with SIGKILL during a stream, switches
 * to the other one and starts another process. It returns the ID of the streamed request.
 */
export const openGateways = Effect.fnUntraced(function* (lane: Lane, model: string) {
  let [active, spare] = yield* Effect.all([startGateway(lane), startGateway(lane)], { concurrency: "unbounded" })
  /** Unix milliseconds. */
  const kills: Array<number> = []
  const caller = { ...lane.caller, call: (...input: Parameters<typeof lane.caller.call>) => active.caller.call(...input) }
  const kill = Effect.gen(function* () {
    const victim = active
    const streamed = yield* startStream(victim.address, lane.state.api_key, model)
    active = spare
    kills.push(Date.now())
    yield* victim.program.signal("SIGKILL")
    yield* victim.program.exited
    spare = yield* startGateway(lane)
    return streamed
  })
  return { caller, kill, kills }
})
