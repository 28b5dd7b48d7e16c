import { isDeepStrictEqual } from "node:util"
import { DeploymentId } from "@seatrial/domain"
import { deltaOf, type Members, passesOf, RecordedDecision, type RecordedPass, replay } from "@seatrial/operator/record"
import { Decisions } from "@seatrial/store"
import { Clock, Effect, FileSystem, type Layer, Option, Schema, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandError } from "./CommandError.ts"
import { parseTime } from "./listing.ts"
import { printRecord, printRows } from "./print.ts"

const deployment = Argument.String("deployment").pipe(
  Argument.withDescription("ID of the deployment, dep_...; not with --replay"),
  Argument.withSchema(DeploymentId),
  Argument.optional
)
const at = Flag.String("at").pipe(
  Flag.withDescription(
    "Show the decision that was in effect at this time, and what was observed: 2026-01-31T12:00:00Z, 2026-01-31, or an age such as 15m or 2h"
  ),
  Flag.optional
)
const limit = Flag.Int("limit").pipe(
  Flag.withDescription("Maximum number of decisions, the newest ones (default 20)"),
  Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000 }))),
  Flag.withDefault(20)
)
const json = Flag.Boolean("json").pipe(Flag.withDescription("Print JSON with the whole observations, for --replay"), Flag.withDefault(false))
const file = Flag.String("replay").pipe(
  Flag.withDescription("Replay the decisions in this file (the output of --json) with the rules of this version. Needs no database"),
  Flag.optional
)

const ExportedPass = Schema.Struct({
  at: Schema.String,
  build: Schema.String,
  rule: Schema.String,
  decision: Schema.Unknown,
  observation: Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown))
})
/** The file format of `--json` and `--replay`. */
const Export = Schema.Struct({ format: Schema.Literal(1), deployment: DeploymentId, decisions: Schema.Array(ExportedPass) })
const decodeExport = Schema.decodeUnknownOption(Schema.fromJsonString(Export))

const timeOf = (millis: number) => new Date(millis).toISOString()

const decisionOf = Schema.decodeUnknownOption(RecordedDecision)

/** The background work, and with which engines it runs if it is not the first one alone. */
const describeWork = ({ engines, ordinal, work }: RecordedDecision): string | null => {
  const used = engines ?? (ordinal === undefined ? [] : [ordinal])
  return used.length === 0 ? work : `${work} (engines ${used.join(", ")})`
}

/** The columns of a decision in a list. */
const summaryOf = ({ decidedAt, decision, rule }: Pick<RecordedPass, "decidedAt" | "decision" | "rule">) => {
  const recorded = Option.getOrNull(decisionOf(decision))
  return {
    at: timeOf(decidedAt),
    rule,
    actions: recorded?.actions.map(({ _tag }) => _tag) ?? [],
    work: recorded === null ? null : describeWork(recorded),
    message: recorded?.message ?? null
  }
}

const exportOf = (id: DeploymentId, passes: ReadonlyArray<RecordedPass>): typeof Export.Type => ({
  format: 1,
  deployment: id,
  decisions: passes.map(({ build, decidedAt, decision, observation, rule }) => ({ at: timeOf(decidedAt), build, rule, decision, observation }))
})

/** A value on one line. */
const brief = (value: unknown): string => {
  const text = value === undefined ? "-" : JSON.stringify(value)
  return text.length <= 120 ? text : `${text.slice(0, 117)}...`
}

const memberAt = (members: unknown, [name, ...rest]: ReadonlyArray<string>): unknown =>
  name === undefined ? members : Schema.is(Schema.Record(Schema.String, Schema.Unknown))(members) ? memberAt(members[name], rest) : undefined

const isBranch = Schema.is(Schema.Union([Schema.Array(Schema.Unknown), Schema.Record(Schema.String, Schema.Unknown)]))

/** The values that differ, each with its path. Values that only one side has are not taken apart. */
const differences = (path: ReadonlyArray<string>, before: unknown, after: unknown): ReadonlyArray<readonly [string, string]> => {
  if (isDeepStrictEqual(before, after)) return []
  if (!isBranch(before) || !isBranch(after)) return [[path.join("."), `${brief(before)} -> ${brief(after)}`]]
  const [earlier, later] = [new Map(Object.entries(before)), new Map(Object.entries(after))]
  return [...new Set([...earlier.keys(), ...later.keys()])].flatMap((name) => differences([...path, name], earlier.get(name), later.get(name)))
}

/** What changed since the record before, by name: the earlier value and the later one. */
const changesOf = (before: Members, observation: Members): Readonly<Record<string, string>> => {
  const { set, unset } = deltaOf(before, observation)
  const changed = set.flatMap(([path, value]) => differences(path, memberAt(before, path), value))
  return Object.fromEntries([...changed, ...unset.map((path) => [path.join("."), `${brief(memberAt(before, path))} -> -`])])
}

const detailsOf = (pass: RecordedPass) => {
  const recorded = Option.getOrNull(decisionOf(pass.decision))
  return {
    deployment: pass.deploymentId,
    ...summaryOf(pass),
    actions: recorded?.actions.map((action) => JSON.stringify(action)) ?? [],
    requeue_at: recorded?.requeueAt == null ? null : timeOf(recorded.requeueAt),
    build: pass.build,
    recorded_at: timeOf(pass.at),
    ...(pass.observation === null
      ? { observed: "unknown: a record before this one was lost" }
      : pass.before === null
        ? { observed: Object.fromEntries(Object.entries(pass.observation).map(([name, value]) => [name, brief(value)])) }
        : { changed: changesOf(pass.before, pass.observation) })
  }
}

const noDecisions = (id: DeploymentId, time: string) =>
  new CommandError({
    message: `No decision about ${id}${time} is recorded. The operator starts to record the decisions about a deployment when it first acts on the deployment, and keeps them for 14 days unless OPERATOR_KEEP_DECISION_DAYS says otherwise. \`seatrial status ${id}\` shows what the deployment does now.`
  })

const unreadableFile = (name: string) => new CommandError({ message: `${name} cannot be read as the output of \`seatrial why --json\`.`, exitCode: 2 })

/** Decides again what a file holds. Fails if a decision differs or cannot be made again. */
const replayFile = Effect.fnUntraced(function* (name: string, asJson: boolean) {
  const text = yield* Effect.mapError(
    (yield* FileSystem.FileSystem).readFileString(name),
    () => new CommandError({ message: `The file ${name} does not exist or cannot be read.`, exitCode: 2 })
  )
  const { decisions } = yield* Effect.mapError(Effect.fromOption(decodeExport(text)), () => unreadableFile(name))
  const rows = decisions.map(({ at: time, build, decision, observation, rule }) => {
    const result = replay({ observation, decision, decidedAt: Date.parse(time) })
    const isDifferent = result._tag === "Differs"
    return {
      at: time,
      build,
      result: result._tag === "Same" ? "same" : isDifferent ? "differs" : "unreadable",
      differs: isDifferent ? result.parts : [],
      rule,
      now: result._tag === "Unreadable" ? null : result.decision.rule,
      actions_now: result._tag === "Unreadable" ? [] : result.decision.actions.map(({ _tag }) => _tag)
    }
  })
  yield* printRows(asJson, rows)
  const same = rows.filter(({ result }) => result === "same").length
  if (same < rows.length) return yield* new CommandError({ message: `${rows.length - same} of ${rows.length} decisions differ or cannot be made again.` })
})

/** Whether the pass was made before the end of the time. */
const isUntil = (end: number | null) => (pass: RecordedPass) => end === null || pass.decidedAt <= end

const show = Effect.fnUntraced(function* (id: DeploymentId, options: { readonly at: Option.Option<string>; readonly json: boolean; readonly limit: number }) {
  const now = yield* Clock.currentTimeMillis
  const end = Option.map(options.at, (text) => parseTime(text, now))
  if (Option.isSome(end) && Option.isNone(end.value))
    return yield* new CommandError({ message: "--at is not a time. Expected for example 2026-01-31T12:00:00Z or 15m.", exitCode: 2 })
  const until = Option.getOrNull(Option.flatten(end))
  const count = until === null ? options.limit : 1
  const { read } = yield* Decisions
  const passes = yield* Stream.runFold(
    Stream.filter(passesOf(read(id)), isUntil(until)),
    (): ReadonlyArray<RecordedPass> => [],
    (newest, pass) => [...newest, pass].slice(-count)
  )
  const last = passes.at(-1)
  if (last === undefined) return yield* noDecisions(id, until === null ? "" : ` at ${timeOf(until)}`)
  if (options.json) return yield* printRecord(true, exportOf(id, passes))
  return yield* until === null ? printRows(false, passes.map(summaryOf)) : printRecord(false, detailsOf(last))
})

/** `layerDecisions`: is built only if the database is needed. */
export const makeWhyCommand = <E, R>(layerDecisions: Layer.Layer<Decisions, E, R>) =>
  Command.make(
    "why",
    { deployment, at, limit, json, replay: file },
    Effect.fn(function* ({ deployment, replay: name, ...options }) {
      if (Option.isSome(name)) {
        if (Option.isSome(deployment) || Option.isSome(options.at))
          return yield* new CommandError({ message: "--replay reads a file: omit the deployment and --at.", exitCode: 2 })
        return yield* replayFile(name.value, options.json)
      }
      if (Option.isNone(deployment)) return yield* new CommandError({ message: "Name a deployment, or a file with --replay.", exitCode: 2 })
      return yield* Effect.provide(show(deployment.value, options), layerDecisions)
    })
  ).pipe(
    Command.withShortDescription("Shows why the operator acted on a deployment. Reads the database."),
    Command.withDescription(
      "Shows the decisions of the operator about a deployment: when, by which rule, and what it did. With --at also what it had observed. For administrators: reads the database. With --replay it decides again offline and reports differences."
    )
  )
