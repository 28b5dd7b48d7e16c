import { SeatrialClient } from "@seatrial/client"
import type { DeploymentDetail } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { Command } from "effect/cli"
import { withCommandErrors } from "./apiErrors.ts"
import { deploymentArgument, jsonFlag } from "./listing.ts"
import { printRows } from "./print.ts"
import { deploymentIdOf } from "./references.ts"

/** The history of a deployment, oldest first. */
const linesOf = ({ checks, ended_at, failure_detail, phases }: DeploymentDetail, message: string | null, at: string) => [
  ...phases.map((phase) => ({ at: phase.at, what: "phase", detail: phase.status })),
  ...checks.filter(({ passed }) => !passed).map(({ detail = "", name }) => ({ at: ended_at ?? at, what: "check failed", detail: `${name}: ${detail}` })),
  ...(failure_detail === null ? [] : [{ at: ended_at ?? at, what: "failure", detail: failure_detail }]),
  ...(message === null || ended_at !== null ? [] : [{ at, what: "now", detail: message }])
]

export const logsCommand = Command.make(
  "logs",
  { id: deploymentArgument, json: jsonFlag },
  Effect.fn(function* ({ id: reference, json }) {
    const api = yield* SeatrialClient
    const id = yield* deploymentIdOf(reference)
    const deployment = yield* withCommandErrors(api.org.deployments.get(id))
    const progress = Option.getOrNull(yield* Effect.option(api.deployments.progress(id)))
    yield* printRows(json, linesOf(deployment, progress?.message ?? null, progress?.updated_at ?? deployment.updated_at))
  })
).pipe(
  Command.withDescription(
    "Shows the history of a deployment: its phases, failed checks, failure and current progress. The engine's log is not included, because it can contain prompts. The cluster administrator can read it with kubectl."
  )
)
