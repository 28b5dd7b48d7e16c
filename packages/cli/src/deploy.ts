import { IdempotencyKey, type Preview } from "@seatrial/api"
import { SeatrialClient } from "@seatrial/client"
import { Clock, Config, Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Access } from "./apiAccess.ts"
import { toCommandError, withCommandErrors } from "./apiErrors.ts"
import { CommandError } from "./CommandError.ts"
import { conclude, follow } from "./follow.ts"
import { jsonFlag, textFlag } from "./listing.ts"
import { printRecord } from "./print.ts"
import { foreignHubNote, modelIdOf, parseRepository } from "./references.ts"
import { servingFlags, servingOf } from "./servingFlags.ts"

const repo = Argument.String("repository").pipe(Argument.withDescription("owner/name on the model hub, or the URL of its page"))

const serving = { ref: textFlag("ref", "Branch, tag or commit (default: the repository's default branch)"), ...servingFlags }

interface RefFlag {
  readonly ref: Option.Option<string>
}

const refOf = ({ ref }: RefFlag) => (Option.isSome(ref) ? { ref: ref.value } : {})
const sourceOf = Effect.fnUntraced(function* (repository: string, flags: RefFlag) {
  const note = foreignHubNote(repository)
  if (note !== null) yield* Console.error(note)
  return { kind: "model_hub", ...parseRepository(repository), ...refOf(flags) } as const
})

/** A redeploy of a model. It changes only the settings that are set. */
const redeployOf = <Id, Serving extends object>(modelId: Id, flags: RefFlag, wanted: Serving) => ({
  model_id: modelId,
  ...refOf(flags),
  ...(Object.keys(wanted).length === 0 ? {} : { serving: wanted })
})

/** The error if it is unknown whether the deployment was created. A retry with the same key returns it. */
const withRetry = ({ exitCode, message }: CommandError, idempotencyKey: string) =>
  new CommandError({ message: `${message} To retry without deploying twice, add --idempotency-key ${idempotencyKey}`, exitCode: exitCode ?? 1 })

/** The part of a preview that is useful to people. */
const previewView = (preview: typeof Preview.Type) => {
  if (preview.kind === "refused") return preview
  const { alternatives, capabilities, placement, ...summary } = preview
  const free = new Map(placement?.host_classes.map(({ free_gpus, gpus, host_class }) => [host_class, `${free_gpus} of ${gpus}`]))
  return {
    ...summary,
    ...(free.has(summary.serving.host_class) ? { gpus_free: free.get(summary.serving.host_class) } : {}),
    ...(placement === undefined || placement.message === null ? {} : { waits: placement.message }),
    alternatives: alternatives.map(({ concurrent_sequences, gpu_count, gpu_pool, host_class, max_context, verdict }) => ({
      host_class,
      verdict,
      gpus: `${gpu_count} x ${gpu_pool}`,
      ...(free.has(host_class) ? { gpus_free: free.get(host_class) } : {}),
      max_context,
      concurrent_sequences
    })),
    supports: Object.entries(capabilities).flatMap(([name, value]) => (name.startsWith("supports_") && value === true ? [name.slice("supports_".length)] : [])),
    endpoints: capabilities.supported_endpoints
  }
}

export const previewCommand = Command.make(
  "preview",
  { repo, ...serving, json: jsonFlag },
  Effect.fn(function* ({ json, repo, ...flags }) {
    const api = yield* SeatrialClient
    const preview = yield* withCommandErrors(api.deployments.preview({ source: yield* sourceOf(repo, flags), serving: yield* servingOf(flags) }))
    yield* printRecord(json, json ? preview : previewView(preview))
    if (preview.kind === "refused")
      return yield* new CommandError({ message: "The model cannot be served with these settings. See the reason and the remedy above." })
  })
).pipe(Command.withDescription("Reports whether and how a model can be served, without deploying it."))

/** The hint after a failed deployment of a new model, for example because of a typo in the repository's name. */
const nameInUseHint = (model: string) =>
  `The failed model still has the name ${model}. Deploy it again with --model-id, or free the name with \`seatrial models delete ${model}\`.`

/** What the examples depend on: the shell has a key in its environment, and npx started this command. */
const shell = Config.all({
  hasKey: Config.String("SEATRIAL_API_KEY").pipe(Config.option, Config.map(Option.isSome)),
  isRunByNpx: Config.String("npm_command").pipe(Config.option, Config.map(Option.contains("exec")))
})

/** Example calls of a serving model. `npx` runs the command in a checkout, where the shell does not find it. */
const callExamples = (model: string, gateway: string, { hasKey, isRunByNpx }: { readonly hasKey: boolean; readonly isRunByNpx: boolean }) =>
  [
    `Call it with: ${isRunByNpx ? "npx " : ""}seatrial chat ${model}`,
    `         or: curl ${gateway}/v1/chat/completions -H "Authorization: Bearer $SEATRIAL_API_KEY" -H "Content-Type: application/json" -d '${JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] })}'`,
    ...(hasKey ? [] : ["For curl, first set SEATRIAL_API_KEY to an API key."])
  ].join("\n")

export const deployCommand = Command.make(
  "deploy",
  {
    repo: Argument.optional(repo),
    ...serving,
    model: textFlag("model-id", "Redeploy this model, by name or ID, instead of a new one from a repository"),
    name: textFlag("name", "The model's name (default: the name of the repository)"),
    candidate: Flag.Boolean("candidate").pipe(Flag.withDescription("Verify the revision, but send no traffic to it"), Flag.withDefault(false)),
    key: Flag.String("idempotency-key").pipe(
      Flag.withDescription("Makes retries of this command safe: the same key returns the same deployment"),
      Flag.withSchema(IdempotencyKey),
      Flag.optional
    ),
    wait: Flag.Boolean("wait").pipe(
      Flag.withDescription("Follow the phases until the deployment ends. Ctrl-C stops following; the deployment continues"),
      Flag.withDefault(false)
    ),
    json: jsonFlag
  },
  Effect.fn(function* ({ candidate, json, key, model, name, repo, wait, ...flags }) {
    if (Option.isSome(repo) === Option.isSome(model)) {
      return yield* new CommandError({ message: "Specify either a repository or, with --model-id, a model to redeploy.", exitCode: 2 })
    }
    if (Option.isSome(model) && Option.isSome(name)) {
      return yield* new CommandError({ message: "--name is only for a new model. A redeployed model keeps its name.", exitCode: 2 })
    }
    const api = yield* SeatrialClient
    const idempotencyKey = Option.getOrElse(key, () => crypto.randomUUID())
    const wanted = yield* servingOf(flags)
    const target = Option.isSome(model)
      ? redeployOf(yield* modelIdOf(model.value), flags, wanted)
      : { source: yield* sourceOf(Option.getOrThrow(repo), flags), ...(Option.isSome(name) ? { model_name: name.value } : {}), serving: wanted }
    const { operation } = yield* api.deployments.create({ ...target, ...(candidate ? { serve: false } : {}) }, { idempotencyKey }).pipe(
      Effect.mapError((failure) => {
        const error = toCommandError(failure)
        return failure._tag === "Unreachable" || failure._tag === "Unavailable" ? withRetry(error, idempotencyKey) : error
      })
    )
    if (!wait) return yield* printRecord(json, operation)
    const started = yield* Clock.currentTimeMillis
    const ended = yield* follow(operation.id)
    if (ended.outcome === "failed" && Option.isSome(repo)) yield* Console.error(nameInUseHint(ended.deployment.model))
    yield* conclude(json, ended)
    yield* Console.error(`Activated after ${(((yield* Clock.currentTimeMillis) - started) / 1000).toFixed(1)} s.`)
    if (!candidate) yield* Console.error(callExamples(ended.deployment.model, (yield* Access).gateway, yield* shell))
  })
).pipe(
  Command.withDescription("Deploys a model from the hub, or a new revision of an existing model."),
  Command.withExamples([{ command: "seatrial deploy seatrial/tiny-chat --wait", description: "Deploy the sample model and follow its phases" }])
)
