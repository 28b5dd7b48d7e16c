import { Duration, Option } from "effect"
import type { AppliedDecision } from "./applyDecision.ts"
import type { DecidedRun } from "./decideRun.ts"

type Delay = Option.Option<Duration.Duration>

/** After the API server refused an object that the run needs, someone must change something first. */
const refusalPause = Duration.seconds(10)

/** If a run goes on without an object, no event reports when one is allowed again. */
const objectPause = Duration.minutes(1)

/** The earliest of several delays. */
export const earliest = (...delays: ReadonlyArray<Delay>): Delay =>
  Option.reduceCompact(delays, Option.none<Duration.Duration>(), (first, delay) =>
    Option.some(Option.match(first, { onNone: () => delay, onSome: (other) => Duration.min(other, delay) }))
  )

/** The delay after which only time changes the decision; none if time changes nothing. */
export const decisionDelay = ({ decision: { actions, requeueAt }, now }: DecidedRun, { refusal, resource }: AppliedDecision): Delay => {
  if (refusal !== null && refusal.kind !== "optional") return Option.some(refusalPause)
  const isObjectMissing = refusal !== null || (resource === null && actions.some(({ _tag }) => _tag === "EnsureResource"))
  return earliest(
    requeueAt === null ? Option.none() : Option.some(Duration.millis(Math.max(0, requeueAt - now))),
    isObjectMissing ? Option.some(objectPause) : Option.none()
  )
}
