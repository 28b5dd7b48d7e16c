import type { StoredDecision } from "@seatrial/store"
import { Option, Schema, Stream } from "effect"
import { applyDelta, Delta, type Members } from "./delta.ts"

/** A recorded decision with the observation that it was made from. */
export interface RecordedPass extends Omit<StoredDecision, "observation"> {
  /** The record of the whole observation; null if a record that it builds on was lost. */
  readonly observation: Members | null
  /** The observation of the record before it in its series; null if there is none. */
  readonly before: Members | null
}

type Last = Pick<RecordedPass, "deploymentId" | "observation" | "seq" | "series" | "term">

const decodeMembers = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.Unknown))
const decodeDelta = Schema.decodeUnknownOption(Delta)

const isNext = (last: Last, { deploymentId, seq, series, term }: StoredDecision): boolean =>
  last.deploymentId === deploymentId && last.term === term && last.series === series && last.seq + 1 === seq

const rebuild = (last: Last | null, row: StoredDecision): RecordedPass => {
  if (row.seq === 0) return { ...row, observation: Option.getOrNull(decodeMembers(row.observation)), before: null }
  const before = last !== null && isNext(last, row) ? last.observation : null
  const observation = before === null ? null : Option.getOrNull(Option.map(decodeDelta(row.observation), (delta) => applyDelta(before, delta)))
  return { ...row, observation, before }
}

/** The decisions with whole observations. Takes the rows in the order of reading, and keeps one of them in memory. */
export const passesOf = <E, R>(rows: Stream.Stream<StoredDecision, E, R>): Stream.Stream<RecordedPass, E, R> =>
  rows.pipe(
    Stream.mapAccum(
      (): Last | null => null,
      (last, row) => {
        const pass = rebuild(last, row)
        return [pass, [pass]] as const
      }
    )
  )
