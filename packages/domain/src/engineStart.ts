import { Schema } from "effect"

const Seconds = Schema.NullOr(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)))

/** The parts of an engine's start, in seconds; null where neither the cluster nor the engine tells. */
export const StartParts = Schema.Struct({
  /** Until its node has the engine's image. */
  image_pull: Seconds,
  /** Until its node has the weights, where they are copied there. */
  weights_to_node: Seconds,
  /** From the engine's process to its weights loaded. */
  process_to_loaded: Seconds,
  /** From there until its pod is ready. */
  loaded_to_ready: Seconds,
  /** From the first request sent to its first token. */
  first_token: Seconds
})
export type StartParts = typeof StartParts.Type

/** `warm`: image and weights were on the node. */
export const StartKind = Schema.Literals(["cold", "warm"])
export type StartKind = typeof StartKind.Type

/** One start of an engine that was seen. */
export interface EngineStart {
  readonly podUid: string
  readonly kind: StartKind
  readonly parts: StartParts
}

const names = ["image_pull", "weights_to_node", "process_to_loaded", "loaded_to_ready", "first_token"] as const

/** The median of each part over starts that told it; null where none did. */
export const medianStart = (starts: ReadonlyArray<StartParts>): StartParts => {
  const median = (name: (typeof names)[number]) => {
    const told = starts.flatMap((parts) => parts[name] ?? []).sort((a, b) => a - b)
    const middle = told.length >> 1
    const [low, high] = [told[told.length % 2 === 1 ? middle : middle - 1], told[middle]]
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
