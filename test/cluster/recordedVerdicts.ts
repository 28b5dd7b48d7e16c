import { Effect, Option, Schema } from "effect"
import { recordedPasses } from "../faults/recordedPasses.ts"
import type { Select } from "../faults/select.ts"

const Verdict = Schema.Struct({ outcome: Schema.String, at: Schema.Finite })
const engine = {
  pod: Schema.NullOr(Schema.Struct({ url: Schema.NullOr(Schema.String) })),
  boot: Schema.NullOr(Schema.Struct({ verdict: Schema.NullOr(Verdict) }))
}
const decodeObserved = Schema.decodeUnknownOption(Schema.Struct({ ...engine, engines: Schema.Array(Schema.Struct(engine)) }))

/**
 * When the operators first had a comparison of each engine with its verified revision, by the engine's address, as their
 * records show: Unix milliseconds. The trial is one too. Comparisons that found other answers do not count.
 */
export const recordedVerdicts = (select: Select) =>
  Effect.map(recordedPasses(select), (passes) => {
    const verified = new Map<string, number>()
    for (const { observation } of passes) {
      const [observed] = Option.toArray(decodeObserved(observation))
      for (const { boot, pod } of observed === undefined ? [] : [observed, ...observed.engines]) {
        const { at = Number.POSITIVE_INFINITY, outcome = "none" } = boot?.verdict ?? {}
        if (pod?.url != null && (outcome === "same" || outcome === "drifted")) verified.set(pod.url, Math.min(at, verified.get(pod.url) ?? at))
      }
    }
    return verified
  })
