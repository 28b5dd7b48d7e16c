import type { LocalClusterOptions } from "@seatrial/local"
import { Deferred, Effect, Stream } from "effect"
import type { Write } from "./Deaths.ts"
import { type Draw, drawsOf } from "./Draw.ts"

type Through = NonNullable<LocalClusterOptions["through"]>
type Handler = Parameters<Through>[0]
type Call = Parameters<Handler>[0]

/** How often each fault meets a request, an answer or an event of the watched program; 0 is never, 1 always. */
export interface FaultRates {
  /** The connection is reset before the request is handled. */
  readonly refused: number
  /** The write takes effect, and the connection is reset before the answer. */
  readonly unanswered: number
  readonly conflict: number
  readonly throttled: number
  readonly broken: number
  /** An answer or a watch ends in the middle of a line. */
  readonly cut: number
  /** A watch gets the error that its version is too old, as its status or within the stream. */
  readonly gone: number
  readonly dropped: number
  readonly repeated: number
  readonly reordered: number
  readonly delayed: number
}

export const noFaults: FaultRates = {
  refused: 0,
  unanswered: 0,
  conflict: 0,
  throttled: 0,
  broken: 0,
  cut: 0,
  gone: 0,
  dropped: 0,
  repeated: 0,
  reordered: 0,
  delayed: 0
}

const status = (code: number, reason: string, message: string, details = {}) => ({
  code,
  json: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, details, code }
})
const gone = status(410, "Expired", "too old resource version: 1 (2)")

/** Closes the connection without a complete answer. */
const reset = Effect.interrupt

/**
 * A proxy between one program and the local cluster's API server, with faults by rates, from a seed, and by hand. Only the
 * program authenticates with a bearer token. All other callers have the token in the path.
 */
export const makeFaultyServer = () => {
  let draw: Draw = drawsOf(1)
  let rates = noFaults
  let away: "refuses" | "hangs" | null = null
  let ended = Deferred.makeUnsafe<void>()
  let maker: <A, E>(write: Write, making: Effect.Effect<A, E>) => Effect.Effect<A | null, E> = (_, making) => making
  const writes: Array<string> = []
  /** Collections whose watch has missed events, or got them out of order, since the last list. */
  const missed = new Set<string>()

  const faultyLines = (collection: string, stream: Stream.Stream<string | Uint8Array>) => {
    let held: string | Uint8Array | undefined
    const lines = stream.pipe(
      Stream.flatMap((line) => {
        const before = held
        held = undefined
        const faults = rates
        if (draw.chance(faults.cut)) {
          const half = String(line).slice(0, Math.floor(String(line).length / 2))
          return Stream.concat(Stream.make(half), Stream.fromEffect(Effect.andThen(Effect.sleep("1 millis"), reset)))
        }
        const all: Array<string | Uint8Array> = draw.chance(faults.dropped) ? [] : draw.chance(faults.repeated) ? [line, line] : [line]
        if (all.length === 0) missed.add(collection)
        if (before === undefined && all.length === 1 && draw.chance(faults.reordered)) {
          missed.add(collection)
          held = line
          return Stream.empty
        }
        if (before !== undefined) all.push(before)
        const events = Stream.fromIterable(all)
        return draw.chance(faults.delayed) ? Stream.concat(Stream.fromEffectDrain(Effect.sleep(draw.between(10, 400))), events) : events
      })
    )
    // A watch that misses events ends after a moment, like a watch that the server closes.
    const moment = rates === noFaults ? Effect.never : Effect.sleep(draw.between(500, 3_000))
    return Stream.interruptWhen(lines, Effect.raceFirst(moment, Deferred.await(ended)))
  }

  /** The write without the names of objects. */
  const kindOf = ({ method, path }: Call) => {
    const collection = path.indexOf("namespaces") === -1 ? 3 : path.indexOf("namespaces") + 2
    return [method, path[collection] ?? "", ...path.slice(collection + 2)].join(" ")
  }
  const nameOf = (call: Call) => `${call.method} /${call.path.join("/")}`

  const through: Through = (handler) => (call) => {
    if (call.prefix !== "") return handler(call)
    return Effect.gen(function* () {
      if (away === "hangs") yield* Deferred.await(ended)
      if (away !== null) return yield* reset
      const watch = call.query.get("watch") === "true"
      const collection = call.path.join("/")
      const write = call.method !== "GET"
      const { broken, conflict, cut, gone: expired, refused, throttled, unanswered } = rates
      if (draw.chance(refused)) return yield* reset
      if (draw.chance(throttled)) return status(429, "TooManyRequests", "the server is busy", { retryAfterSeconds: 1 })
      if (draw.chance(broken)) return status(500, "InternalError", "Internal error occurred: it is a fault")
      // No API server withholds an event for minutes: a program that missed one must list again after the faults.
      if (watch && rates === noFaults && missed.has(collection)) return gone
      if (watch) {
        if (draw.chance(expired))
          return draw.chance(0.5)
            ? gone
            : { code: 200, mediaType: "application/json", stream: Stream.make(`${JSON.stringify({ type: "ERROR", object: gone.json })}\n`) }
        const answer = yield* handler(call)
        return "stream" in answer ? { ...answer, stream: faultyLines(collection, answer.stream) } : answer
      }
      if (!write) {
        missed.delete(collection)
        const answer = yield* handler(call)
        if (!draw.chance(cut) || !("json" in answer)) return answer
        const text = JSON.stringify(answer.json)
        return { code: 200, mediaType: "application/json", stream: Stream.concat(Stream.make(text.slice(0, text.length / 2)), Stream.fromEffect(reset)) }
      }
      // Only writes that name the version that they have read get a conflict: statuses and leases.
      const versioned = call.method === "PUT" || (call.method === "PATCH" && call.path.at(-1) === "status")
      if (versioned && draw.chance(conflict)) return status(409, "Conflict", "the object has been modified")
      const what = nameOf(call)
      const making = Effect.tap(handler(call), () => Effect.sync(() => writes.push(what)))
      const answer = call.path.includes("leases") ? yield* handler(call) : yield* maker({ what: kindOf(call), about: `${what} ${call.body}` }, making)
      return answer === null || draw.chance(unanswered) ? yield* reset : answer
    })
  }

  return {
    through,
    /** Every write of the program that took effect, in order, except leases. */
    writes,
    setFaults: (next: FaultRates, seed: number) => {
      rates = next
      draw = drawsOf(seed)
      Deferred.doneUnsafe(ended, Effect.void)
      ended = Deferred.makeUnsafe()
    },
    /** Closes all connections. While it is away, it refuses new ones, or accepts them and never answers. */
    setAway: (next: typeof away) => {
      away = next
      Deferred.doneUnsafe(ended, Effect.void)
      ended = Deferred.makeUnsafe()
    },
    /** Performs every following write of the program; null if the program gets no answer. */
    setMaker: (next: typeof maker) => {
      maker = next
    }
  }
}
