import { type ClientFailure, type PublicError, SeatrialClient } from "@seatrial/client"
import { type Deployment, DeploymentBucket, type DeploymentProgress } from "@seatrial/domain"
import { Console, Effect, Option, Schedule, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { withCommandErrors } from "./apiErrors.ts"
import { CommandError } from "./CommandError.ts"
import { inColor } from "./color.ts"
import { conclude, follow } from "./follow.ts"
import { deploymentArgument, jsonFlag, limitFlag, pageSizeFor, printList, textFlag } from "./listing.ts"
import { printRecord } from "./print.ts"
import { size, tableOf } from "./readable.ts"
import { deploymentIdOf, optionalModelId } from "./references.ts"
import { waitingAdvice } from "./waitingAdvice.ts"

const row = (deployment: Deployment) => ({
  id: deployment.id,
  model: deployment.model,
  status: deployment.status,
  created: deployment.created_at,
  ended: deployment.ended_at,
  commit: deployment.hf_revision?.slice(0, 7) ?? null,
  failure: deployment.failure_detail?.replace(/:.*/s, "") ?? null
})

/** Interval between two reads of the list. The API has no notifications. */
const watchInterval = "2 seconds"

/** Prints the list, then each record that has changed. Ignores temporary failures of the server. */
const watchList = Effect.fnUntraced(function* <E extends PublicError | ClientFailure>(deployments: Stream.Stream<Deployment, E>) {
  const printed = new Map<string, string>()
  const printChanges = Effect.gen(function* () {
    const records = yield* withCommandErrors(Stream.runCollect(deployments))
    const [header = "", ...lines] = tableOf(records.map(row))
    const changed = records.flatMap((record, index) => (printed.get(record.id) === record.updated_at ? [] : [{ record, line: lines[index] ?? "" }]))
    for (const { record } of changed) printed.set(record.id, record.updated_at)
    if (changed.length > 0) yield* Console.log(inColor([header, ...changed.toReversed().map(({ line }) => line)], true).join("\n"))
  })
  yield* printChanges
  yield* Effect.repeat(Effect.ignore(printChanges), Schedule.spaced(watchInterval))
})

const list = Command.make(
  "list",
  {
    status: Flag.Literals("status", DeploymentBucket.literals).pipe(
      Flag.withDescription("Only deployments that are running, succeeded, failed or stopped"),
      Flag.optional
    ),
    model: textFlag("model", "Only deployments of this model: name or ID"),
    limit: limitFlag,
    watch: Flag.Boolean("watch").pipe(
      Flag.withDescription("Keep running and print each deployment again when it changes, until Ctrl-C"),
      Flag.withDefault(false)
    ),
    json: jsonFlag
  },
  Effect.fn(function* ({ model, status, watch, ...output }) {
    const api = yield* SeatrialClient
    const filters = { ...(Option.isSome(status) ? { status: status.value } : {}), ...(yield* optionalModelId(model)) }
    const deployments = api.org.deployments.list({ ...filters, pageSize: pageSizeFor(output.limit) })
    if (!watch) return yield* printList(output, deployments, row)
    if (output.json) return yield* new CommandError({ message: "--watch cannot be combined with --json.", exitCode: 2 })
    yield* watchList(Stream.take(deployments, output.limit))
  })
).pipe(Command.withDescription("Lists deployments, newest first."))

/** The progress of a deployment for people. */
const progressView = ({ download, message, queue }: DeploymentProgress) => ({
  message,
  ...(queue === null ? {} : { waits_for: queue.place === null ? queue.waits_for : `${queue.waits_for}, place ${queue.place} in the queue` }),
  ...(download === null
    ? {}
    : {
        download: `${size(download.bytes)} of ${size(download.total_bytes)}${download.seconds_left === null ? "" : `, ${download.seconds_left} s left`}`
      })
})

const show = Effect.fnUntraced(function* ({ id: reference, json }: { readonly id: string; readonly json: boolean }) {
  const api = yield* SeatrialClient
  const id = yield* deploymentIdOf(reference)
  const deployment = yield* withCommandErrors(api.org.deployments.get(id))
  // Earlier versions of the server do not have this operation.
  const progress = Option.getOrNull(yield* Effect.option(api.deployments.progress(id)))
  const meaning = waitingAdvice(deployment.status, deployment.id)
  const shown = { ...deployment, ...(progress === null ? {} : progressView(progress)), ...(meaning === undefined ? {} : { meaning }) }
  yield* printRecord(json, json ? { ...deployment, progress } : shown)
})

const cancel = Effect.fnUntraced(function* ({ id, json }: { readonly id: string; readonly json: boolean }) {
  const api = yield* SeatrialClient
  yield* printRecord(json, yield* withCommandErrors(api.deployments.cancel(yield* deploymentIdOf(id))))
})

const one = { id: deploymentArgument, json: jsonFlag }

const watch = Command.make(
  "watch",
  one,
  Effect.fn(function* ({ id, json }) {
    yield* conclude(json, yield* follow(yield* deploymentIdOf(id)))
  })
).pipe(Command.withDescription("Follows the phases of a deployment until it ends. Ctrl-C stops following; the deployment continues."))

const showDescription = "Shows a deployment: phases, checks, revision."
const cancelDescription = "Cancels an unfinished deployment. The serving revision keeps serving."

export const deploymentsCommand = Command.make("deployments").pipe(
  Command.withDescription("The organization's deployments."),
  Command.withSubcommands([
    list,
    Command.make("get", one, show).pipe(Command.withDescription(showDescription)),
    watch,
    Command.make("cancel", one, cancel).pipe(Command.withDescription(cancelDescription))
  ])
)

export const statusCommand = Command.make("status", one, show).pipe(Command.withDescription(`${showDescription} The same as \`deployments get\`.`))
export const cancelCommand = Command.make("cancel", one, cancel).pipe(Command.withDescription(`${cancelDescription} The same as \`deployments cancel\`.`))
