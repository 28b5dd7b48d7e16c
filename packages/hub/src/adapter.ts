import { type Commit, RepoName, type RepositoryFile } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { HubRefusal } from "./failures.ts"
import type { HubConnection } from "./HubConnection.ts"
import { resolve } from "./resolve.ts"

const AdapterConfig = Schema.Struct({
  peft_type: Schema.optionalKey(Schema.NullOr(Schema.String)),
  base_model_name_or_path: Schema.optionalKey(Schema.NullOr(Schema.String)),
  revision: Schema.optionalKey(Schema.NullOr(Schema.String)),
  r: Schema.optionalKey(Schema.NullOr(Schema.Int))
})
const decode = Schema.decodeUnknownOption(AdapterConfig)
const isRepoName = Schema.is(RepoName)

/** Whether a repository holds an adapter for another model's weights, in the layout of PEFT, and no model of its own. */
export const isAdapter = (root: ReadonlyMap<string, RepositoryFile>): boolean => root.has("adapter_config.json") && !root.has("config.json")

const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`

/**
 * What an adapter's repository is, with its base pinned to a commit: why it is not served by itself, and which model to deploy. An adapter is served beside its base,
 * never from its own repository.
 */
export const adapterRefusal = Effect.fnUntraced(function* (options: {
  readonly connection: HubConnection
  readonly repo: string
  readonly commit: Commit
  readonly config: unknown
  readonly weights: RepositoryFile | undefined
}) {
  const { commit, config, connection, repo, weights } = options
  const refuse = (message: string, remedy: string) => new HubRefusal({ code: "unsupported_format", message, remedy, commit })
  const known = decode(config)
  if (Option.isNone(known) || known.value.peft_type?.toUpperCase() !== "LORA")
    return refuse(`${repo} is an adapter of a kind that no engine here serves: only LoRA is known.`, "Name a repository of a whole model.")
  const { base_model_name_or_path: base, r, revision } = known.value
  const what = `${repo} is a LoRA adapter${r === undefined || r === null ? "" : ` of rank ${r}`}${weights === undefined ? "" : ` (${mib(weights.size)})`}`
  if (!isRepoName(base))
    return refuse(`${what} that does not name its base model on the hub.`, "Name a repository of a whole model, or one with the adapter merged into it.")
  const ref = revision === null || revision === undefined || revision === "" ? undefined : revision
  const pinned = yield* Effect.option(resolve(connection, base, ref))
  if (Option.isNone(pinned))
    return refuse(
      `${what} for ${base}, which the hub does not show to the user whose API key asks.`,
      `Get access to ${base}, or name a repository of a whole model.`
    )
  return refuse(
    `${what} for ${pinned.value.repo} at commit ${pinned.value.commit}: it holds no model of its own, and adapters are not served yet.`,
    `Deploy the base model ${pinned.value.repo} with the ref ${pinned.value.commit}, or a repository with the adapter merged into it.`
  )
})
