import { SeatrialClient } from "@seatrial/client"
import { type Deployment, DeploymentBucket, type DeploymentProgress } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { conclude, follow } from "./follow.ts"
import { idArgument, jsonFlag, limitFlag, pageSizeFor, printList, textFlag } from "./listing.ts"
import { printRecord } from "./print.ts"
import { readableRecord } from "./readable.ts"
import { told } from "./told.ts"
import { waitingAdvice } from "./waitingAdvice.ts"

const id = idArgument("The deployment's id, dep_...")

const row = (deployment: Deployment) => ({
  id: deployment.id,
  model: deployment.model,
  status: deployment.status,
  created: deployment.created_at,
  ended: deployment.ended_at,
  commit: deployment.hf_revision?.slice(0, 7) ?? null,
  failure: deployment.failure_detail?.replace(/:.*/s, "") ?? null
})

const list = Command.make(
  "list",
  {
    status: Flag.Literals("status", DeploymentBucket.literals).pipe(
      Flag.withDescription("Only those that are running, succeeded, failed or stopped"),
      Flag.optional
    ),
    model: textFlag("model", "Only those of this model, mdl_..."),
    limit: limitFlag,
    json: jsonFlag
  },
  Effect.fn(function* ({ model, status, ...shown }) {
    const api = yield* SeatrialClient
    const filters = { ...(Option.isSome(status) ? { status: status.value } : {}), ...(Option.isSome(model) ? { model_id: model.value } : {}) }
    yield* printList(shown, api.org.deployments.list({ ...filters, pageSize: pageSizeFor(shown.limit) }), row)
  })
).pipe(Command.withDescription("Lists deployments, newest first."))

/** The progress of a deployment for people: what there is of it. */
const progressView = ({ download, message, queue }: DeploymentProgress) => ({
  message,
  ...(queue === null ? {} : { waits_for: queue.place === null ? queue.waits_for : `${queue.waits_for}, place ${queue.place} in the queue` }),
  ...(download === null
    ? {}
    : {
        download: `${download.bytes} of ${download.total_bytes} bytes${download.seconds_left === null ? "" : `, ${download.seconds_left} s left`}`
      })
})

const show = Effect.fnUntraced(function* ({ id, json }: { readonly id: string; readonly json: boolean }) {
  const api = yield* SeatrialClient
  const deployment = yield* told(api.org.deployments.get(id))
  // A server of an earlier version does not know the operation.
  const progress = Option.getOrNull(yield* Effect.option(api.deployments.progress(id)))
  const meaning = waitingAdvice(deployment.status, deployment.id)
  const shown = { ...deployment, ...(progress === null ? {} : progressView(progress)), ...(meaning === undefined ? {} : { meaning }) }
  yield* printRecord(json, json ? { ...deployment, progress } : readableRecord(shown))
})

const cancel = Effect.fnUntraced(function* ({ id, json }: { readonly id: string; readonly json: boolean }) {
  const api = yield* SeatrialClient
  yield* printRecord(json, yield* told(api.deployments.cancel(id)))
})

const one = { id, json: jsonFlag }

const watch = Command.make(
  "watch",
  one,
  Effect.fn(function* ({ id, json }) {
    yield* conclude(json, yield* follow(id))
  })
).pipe(Command.withDescription("Follows a deployment's phases to their end. Ctrl-C ends the watching, not the deployment."))

const showing = "Shows a deployment: phases, checks, revision."
const cancelling = "Ends an unfinished deployment; what serves keeps serving."

export const deploymentsCommand = Command.make("deployments").pipe(
  Command.withDescription("The organization's deployments."),
  Command.withSubcommands([
    list,
    Command.make("get", one, show).pipe(Command.withDescription(showing)),
    watch,
    Command.make("cancel", one, cancel).pipe(Command.withDescription(cancelling))
  ])
)

export const statusCommand = Command.make("status", one, show).pipe(Command.withDescription(`${showing} The same as \`deployments get\`.`))
export const cancelCommand = Command.make("cancel", one, cancel).pipe(Command.withDescription(`${cancelling} The same as \`deployments cancel\`.`))
