import { DeploymentId } from "@seatrial/domain"
import { passesOf } from "@seatrial/operator/record"
import { Effect, Schema, Stream } from "effect"
import type { Select } from "./select.ts"

const Decided = Schema.Array(
  Schema.Struct({
    deploymentId: DeploymentId,
    term: Schema.Int,
    series: Schema.Finite,
    seq: Schema.Int,
    at: Schema.Finite,
    decidedAt: Schema.Finite,
    build: Schema.String,
    rule: Schema.String,
    observation: Schema.Unknown,
    decision: Schema.Unknown
  })
)
const decisions = `
  SELECT deployment_id AS "deploymentId", term, series::float8 AS series, seq, (extract(epoch FROM at) * 1000)::float8 AS at,
    (extract(epoch FROM decided_at) * 1000)::float8 AS "decidedAt", build, rule, observation, decision
  FROM decisions ORDER BY deployment_id, term, series, seq`

/** The recorded decisions of the operators, with their observations. */
export const recordedPasses = (select: Select) => Effect.flatMap(select(Decided, decisions), (rows) => Stream.runCollect(passesOf(Stream.fromIterable(rows))))
