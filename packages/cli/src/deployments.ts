import { DeploymentOperation, Runtime, V1DeploymentDetail } from "@seatrial/domain"
import { Clock, Console, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { ApiClient } from "./ApiClient.ts"
import { CommandError } from "./CommandError.ts"
import { printRecord } from "./print.ts"

const json = Flag.Boolean("json").pipe(Flag.withDescription("Print JSON"), Flag.withDefault(false))
const id = Argument.String("id").pipe(Argument.withDescription("The deployment's id, dep_..."))
const repo = Argument.String("repository").pipe(Argument.withDescription("owner/name on the model hub"))
const optionalText = (name: string, description: string) => Flag.String(name).pipe(Flag.withDescription(description), Flag.optional)
const optionalInt = (name: string, description: string) => Flag.Int(name).pipe(Flag.withDescription(description), Flag.optional)

const serving = {
  ref: optionalText("ref", "Branch, tag or commit (default: the repository's default branch)"),
  hostClass: optionalText("host-class", "Host class to run on (default: the cheapest that fits)"),
  runtime: Flag.Literals("runtime", Runtime.literals).pipe(Flag.withDescription("Serving engine (default: the host class's first)"), Flag.optional),
  maxContext: optionalInt("max-context", "Longest context, in tokens (default: the longest that fits)")
}

interface ServingFlags {
  readonly ref: Option.Option<string>
  readonly hostClass: Option.Option<string>
  readonly runtime: Option.Option<string>
  readonly maxContext: Option.Option<number>
}

const given = (name: string, value: Option.Option<unknown>) => (Option.isSome(value) ? { [name]: value.value } : {})
const body = (repository: string, flags: ServingFlags) => ({
  source: { kind: "model_hub", repo: repository, ...given("ref", flags.ref) },
  serving: { ...given("host_class", flags.hostClass), ...given("runtime", flags.runtime), ...given("max_context", flags.maxContext) }
})

/** Of a model that exists only what is given changes. */
const again = (model: Option.Option<string>, flags: ServingFlags) => {
  const { serving } = body("", flags)
  return { ...given("model_id", model), ...given("ref", flags.ref), ...(Object.keys(serving).length === 0 ? {} : { serving }) }
}

const Anything = Schema.Record(Schema.String, Schema.Unknown)

export const previewCommand = Command.make(
  "preview",
  { repo, ...serving, json },
  Effect.fn(function* ({ json, repo, ...flags }) {
    const api = yield* ApiClient
    const preview = yield* api.post("/v1/deployment-previews", body(repo, flags), Anything)
    yield* printRecord(json, preview)
    if (preview.kind === "refused") return yield* new CommandError({ message: "The model cannot be served like this; the reason and the remedy are above." })
  })
).pipe(Command.withDescription("Says whether and how a model can be served, without deploying it."))

const terminal = new Set(["activated", "failed", "cancelled"])

/** Prints each phase as it is entered, until the run is over. */
const watch = Effect.fn(function* (deployment: string) {
  const api = yield* ApiClient
  let shown = 0
  for (;;) {
    const detail = yield* api.get(`/v1/deployments/${deployment}`, V1DeploymentDetail)
    for (const { at, status } of detail.phases.slice(shown)) yield* Console.error(`${at}  ${status}`)
    shown = detail.phases.length
    if (terminal.has(detail.status)) return detail
    yield* Effect.sleep("500 millis")
  }
})

export const deployCommand = Command.make(
  "deploy",
  {
    repo: Argument.optional(repo),
    ...serving,
    model: optionalText("model-id", "Deploy this model once more, mdl_..., instead of a new one from a repository"),
    name: optionalText("name", "The model's name (default: the repository's)"),
    candidate: Flag.Boolean("candidate").pipe(Flag.withDescription("Check the model without letting it carry traffic"), Flag.withDefault(false)),
    key: optionalText("idempotency-key", "Makes repeating this command safe: the same key gives the same deployment"),
    wait: Flag.Boolean("wait").pipe(Flag.withDescription("Follow the phases to their end"), Flag.withDefault(false)),
    json
  },
  Effect.fn(function* ({ candidate, json, key, model, name, repo, wait, ...flags }) {
    if (Option.isSome(repo) === Option.isSome(model)) {
      return yield* new CommandError({ message: "Name either a repository or, with --model-id, a model to deploy once more.", exitCode: 2 })
    }
    const api = yield* ApiClient
    const idempotencyKey = Option.getOrElse(key, () => crypto.randomUUID())
    const target = Option.match(repo, { onNone: () => again(model, flags), onSome: (repository) => body(repository, flags) })
    const input = { ...target, ...given("model_name", name), ...(candidate ? { serve: false } : {}) }
    const made = yield* api.post("/v1/deployments", input, DeploymentOperation, { "idempotency-key": idempotencyKey })
    if (!wait) return yield* printRecord(json, made)
    const started = yield* Clock.currentTimeMillis
    const detail = yield* watch(made.id)
    const { checks, phases: _, ...shown } = detail
    yield* printRecord(json, json ? detail : { ...shown, checks: `${checks.filter(({ passed }) => passed).length} of ${checks.length} passed` })
    if (detail.status !== "activated")
      return yield* new CommandError({
        message: `The deployment ended as ${detail.status}${detail.failure_detail === null ? "" : `: ${detail.failure_detail}`}`
      })
    yield* Console.error(`Activated after ${(((yield* Clock.currentTimeMillis) - started) / 1000).toFixed(1)} s.`)
  })
).pipe(
  Command.withDescription("Deploys a model from the hub, or another revision of a model that exists."),
  Command.withExamples([{ command: "seatrial deploy seatrial/tiny-chat --wait", description: "Deploy the sample model and follow its phases" }])
)

export const statusCommand = Command.make(
  "status",
  { id, json },
  Effect.fn(function* ({ id, json }) {
    const api = yield* ApiClient
    yield* printRecord(json, yield* api.get(`/v1/deployments/${encodeURIComponent(id)}`, V1DeploymentDetail))
  })
).pipe(Command.withDescription("Shows a deployment: phases, checks, revision."))

const Cancelled = Schema.Struct({ id: Schema.String, cancelled: Schema.Literal(true) })

export const cancelCommand = Command.make(
  "cancel",
  { id, json },
  Effect.fn(function* ({ id, json }) {
    const api = yield* ApiClient
    yield* printRecord(json, yield* api.post(`/v1/deployments/${encodeURIComponent(id)}/cancel`, {}, Cancelled))
  })
).pipe(Command.withDescription("Ends an unfinished deployment; what serves keeps serving."))
