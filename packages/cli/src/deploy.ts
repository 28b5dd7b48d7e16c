import { IdempotencyKey, type Preview } from "@seatrial/api"
import { SeatrialClient } from "@seatrial/client"
import { Clock, Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Access } from "./apiAccess.ts"
import { CommandError } from "./CommandError.ts"
import { conclude, follow } from "./follow.ts"
import { jsonFlag, textFlag } from "./listing.ts"
import { printRecord } from "./print.ts"
import { modelIdOf, parseRepository } from "./references.ts"
import { servingFlags, servingOf } from "./servingFlags.ts"
import { toCommandError, told } from "./told.ts"

const repo = Argument.String("repository").pipe(Argument.withDescription("owner/name on the model hub, or the address of its page there"))

const serving = { ref: textFlag("ref", "Branch, tag or commit (default: the repository's default branch)"), ...servingFlags }

interface RefFlag {
  readonly ref: Option.Option<string>
}

const refOf = ({ ref }: RefFlag) => (Option.isSome(ref) ? { ref: ref.value } : {})
const sourceOf = (repository: string, flags: RefFlag) => ({ kind: "model_hub", ...parseRepository(repository), ...refOf(flags) }) as const

/** What a person compares: the rest of a preview is for programs. */
const previewView = (preview: typeof Preview.Type) => {
  if (preview.kind === "refused") return preview
  const { alternatives, capabilities, placement, ...shown } = preview
  const free = new Map(placement?.host_classes.map(({ free_gpus, gpus, host_class }) => [host_class, `${free_gpus} of ${gpus}`]))
  return {
    ...shown,
    ...(free.has(shown.serving.host_class) ? { gpus_free: free.get(shown.serving.host_class) } : {}),
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
    const preview = yield* told(api.deployments.preview({ source: sourceOf(repo, flags), serving: yield* servingOf(flags) }))
    yield* printRecord(json, json ? preview : previewView(preview))
    if (preview.kind === "refused") return yield* new CommandError({ message: "The model cannot be served like this; the reason and the remedy are above." })
  })
).pipe(Command.withDescription("Says whether and how a model can be served, without deploying it."))

/** After a typo in the repository's name. */
const nameStays = (model: string) =>
  `The name ${model} stays with this model: deploy it again with --model-id, or free the name with \`seatrial models delete ${model}\`.`

/** How the model is called, once it serves. */
const callLine = (model: string, gateway: string) =>
  [
    `Now call it: seatrial chat ${model}`,
    `         or: curl ${gateway}/v1/chat/completions -H "Authorization: Bearer $SEATRIAL_API_KEY" -H "Content-Type: application/json" -d '${JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] })}'`
  ].join("\n")

export const deployCommand = Command.make(
  "deploy",
  {
    repo: Argument.optional(repo),
    ...serving,
    model: textFlag("model-id", "Deploy this model again, by name or id, instead of a new one from a repository"),
    name: textFlag("name", "The model's name (default: the repository's)"),
    candidate: Flag.Boolean("candidate").pipe(Flag.withDescription("Check the model without letting it carry traffic"), Flag.withDefault(false)),
    key: Flag.String("idempotency-key").pipe(
      Flag.withDescription("Makes repeating this command safe: the same key gives the same deployment"),
      Flag.withSchema(IdempotencyKey),
      Flag.optional
    ),
    wait: Flag.Boolean("wait").pipe(
      Flag.withDescription("Follow the phases to their end; Ctrl-C ends the watching, not the deployment"),
      Flag.withDefault(false)
    ),
    json: jsonFlag
  },
  Effect.fn(function* ({ candidate, json, key, model, name, repo, wait, ...flags }) {
    if (Option.isSome(repo) === Option.isSome(model)) {
      return yield* new CommandError({ message: "Name either a repository or, with --model-id, a model to deploy once more.", exitCode: 2 })
    }
    if (Option.isSome(model) && Option.isSome(name)) {
      return yield* new CommandError({ message: "--name is for a new model; one that is deployed once more keeps its own.", exitCode: 2 })
    }
    const api = yield* SeatrialClient
    const idempotencyKey = Option.getOrElse(key, () => crypto.randomUUID())
    const wanted = yield* servingOf(flags)
    // Of a model that exists only what is given changes.
    const target = Option.isSome(model)
      ? { model_id: yield* modelIdOf(model.value), ...refOf(flags), ...(Object.keys(wanted).length === 0 ? {} : { serving: wanted }) }
      : { source: sourceOf(Option.getOrThrow(repo), flags), ...(Option.isSome(name) ? { model_name: name.value } : {}), serving: wanted }
    const { operation } = yield* api.deployments.create({ ...target, ...(candidate ? { serve: false } : {}) }, { idempotencyKey }).pipe(
      Effect.mapError((failure) => {
        const error = toCommandError(failure)
        // It is not known whether the deployment was made; the key finds out.
        if (failure._tag !== "Unreachable" && failure._tag !== "Unavailable") return error
        return new CommandError({
          message: `${error.message} To try again without deploying twice, add --idempotency-key ${idempotencyKey}`,
          exitCode: error.exitCode ?? 1
        })
      })
    )
    if (!wait) return yield* printRecord(json, operation)
    const started = yield* Clock.currentTimeMillis
    const ended = yield* follow(operation.id)
    if (ended.outcome === "failed" && Option.isSome(repo)) yield* Console.error(nameStays(ended.deployment.model))
    yield* conclude(json, ended)
    yield* Console.error(`Activated after ${(((yield* Clock.currentTimeMillis) - started) / 1000).toFixed(1)} s.`)
    if (!candidate) yield* Console.error(callLine(ended.deployment.model, (yield* Access).gateway))
  })
).pipe(
  Command.withDescription("Deploys a model from the hub, or another revision of a model that exists."),
  Command.withExamples([{ command: "seatrial deploy seatrial/tiny-chat --wait", description: "Deploy the sample model and follow its phases" }])
)
