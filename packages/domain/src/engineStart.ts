import { Schema } from "effect"

const Seconds = Schema.NullOr(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)))

/** The parts of an engine's start, in seconds; null if neither the cluster nor the engine reports it. */
export const StartParts = Schema.Struct({
  /** Until the node has the engine's image. */
  image_pull: Seconds,
  /** Until the node has the weights, if they are copied to it. */
  weights_to_node: Seconds,
  /** From the start of the engine's process until its weights are loaded. */
  process_to_loaded: Seconds,
  /** From loaded weights until the pod is ready. */
  loaded_to_ready: Seconds,
  /** From the first request sent to its first token. */
  first_token: Seconds
})
export type StartParts = typeof StartParts.Type

/** `warm`: the node already had the image and the weights. */
export const StartKind = Schema.Literals(["cold", "warm"])
export type StartKind = typeof StartKind.Type

/** One observed start of an engine. */
export interface EngineStart {
  readonly podUid: string
  readonly kind: StartKind
  readonly parts: StartParts
}

const names = ["image_pull", "weights_to_node", "process_to_loaded", "loaded_to_ready", "first_token"] as const

/** The median of each part over the starts that report it; null if none does. */
export const medianStart = (starts: ReadonlyArray<StartParts>): StartParts => {
  const median = (name: (typeof names)[number]) => {
    const reported = starts.flatMap((parts) => parts[name] ?? []).sort((a, b) => a - b)
    const middle = reported.length >> 1
    const [low, high] = [reported[reported.length % 2 === 1 ? middle : middle - 1], reported[middle]]
    return low === undefined || high === undefined ? null : (low + high) / 2
  }
  return {
    image_pull: median("image_pull"),
    weights_to_node: median("weights_to_node"),
    process_to_loaded: median("process_to_loaded"),
    loaded_to_ready: median("loaded_to_ready"),
    first_token: median("first_token")
  }
}
