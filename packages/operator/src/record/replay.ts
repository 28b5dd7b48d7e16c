import { isDeepStrictEqual } from "node:util"
import { Option, Schema } from "effect"
import type { NamedDecision } from "../decide/Decision.ts"
import { decide } from "../decide/decide.ts"
import { fromRecord } from "./RecordedObservation.ts"

const Action = Schema.StructWithRest(Schema.Struct({ _tag: Schema.String }), [Schema.Record(Schema.String, Schema.Unknown)])

/** A recorded decision. Its actions are as the version that made it wrote them. */
export const RecordedDecision = Schema.Struct({
  rule: Schema.String,
  actions: Schema.Array(Action),
  work: Schema.NullOr(Schema.String),
  engines: Schema.optionalKey(Schema.Array(Schema.Int)),
  /** The only engine that `work` uses, in records of earlier versions. */
  ordinal: Schema.optionalKey(Schema.Int),
  message: Schema.String,
  requeueAt: Schema.NullOr(Schema.Finite)
})
export type RecordedDecision = typeof RecordedDecision.Type

/** The parts of a decision that this version may decide differently. Sentences do not count. */
type Part = "rule" | "actions" | "work" | "requeueAt"

/** The result of deciding again. */
export type Replay =
  | { readonly _tag: "Same"; readonly decision: RecordedDecision }
  | { readonly _tag: "Differs"; readonly parts: ReadonlyArray<Part>; readonly recorded: RecordedDecision; readonly decision: RecordedDecision }
  /** This version cannot read the record, or a record that it builds on was lost. */
  | { readonly _tag: "Unreadable" }

const decodeDecision = Schema.decodeUnknownOption(RecordedDecision)
const decodeFailure = Schema.decodeUnknownOption(Schema.Struct({ code: Schema.String }))

/** The members of an action that hold sentences. */
const sentences: Readonly<Record<string, string>> = { Enter: "reason", MoveBack: "reason", RecordEvent: "message" }

/** What an action does, without its sentences. */
const effectOf = ({ failure, ...action }: typeof Action.Type): unknown => {
  const effects = Object.entries(action).filter(([name]) => name !== sentences[action._tag])
  return { ...Object.fromEntries(effects), failure: Option.getOrNull(decodeFailure(failure)) }
}

/** The background work, with the engines that it uses. */
const workIn = ({ engines, ordinal = 0, work }: RecordedDecision): unknown => (work === null ? null : [work, engines ?? [ordinal]])

const partsOf = (recorded: RecordedDecision, now: RecordedDecision): ReadonlyArray<Part> => [
  ...(recorded.rule === now.rule ? [] : ["rule" as const]),
  ...(isDeepStrictEqual(recorded.actions.map(effectOf), now.actions.map(effectOf)) ? [] : ["actions" as const]),
  ...(isDeepStrictEqual(workIn(recorded), workIn(now)) ? [] : ["work" as const]),
  ...(recorded.requeueAt === now.requeueAt ? [] : ["requeueAt" as const])
]

/** The decision as it would be recorded. */
const asRecorded = (decision: NamedDecision): Option.Option<RecordedDecision> => decodeDecision(JSON.parse(JSON.stringify(decision)))

/** Decides again with the rules of this version. Needs neither a database nor a cluster. */
export const replay = (pass: { readonly observation: unknown; readonly decision: unknown; readonly decidedAt: number }): Replay => {
  const again = Option.flatMap(fromRecord(pass.observation), (observation) => asRecorded(decide(observation, pass.decidedAt)))
  return Option.match(Option.all([decodeDecision(pass.decision), again]), {
    onNone: (): Replay => ({ _tag: "Unreadable" }),
    onSome: ([recorded, decision]) => {
      const parts = partsOf(recorded, decision)
      return parts.length === 0 ? { _tag: "Same", decision } : { _tag: "Differs", parts, recorded, decision }
    }
  })
}
