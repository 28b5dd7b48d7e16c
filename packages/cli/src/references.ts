import { type ClientFailure, type PublicError, SeatrialClient } from "@seatrial/client"
import type { OrgModel } from "@seatrial/domain"
import { Effect, Option, Stream } from "effect"
import { Argument } from "effect/cli"
import { toCommandError, withCommandErrors } from "./apiErrors.ts"
import { CommandError } from "./CommandError.ts"

export const modelArgument = Argument.String("model").pipe(Argument.withDescription("The model's name, tiny-chat or acme/tiny-chat, or its ID, mdl_..."))

const isModelId = (text: string) => text.startsWith("mdl_")
const isDeploymentId = (text: string) => text.startsWith("dep_")

/** The name that callers use for a model of the organization. It is read from the newest deployment. */
export const callableName = Effect.fnUntraced(function* ({ id, slug }: OrgModel) {
  const api = yield* SeatrialClient
  const newest = yield* withCommandErrors(Stream.runHead(api.org.deployments.list({ model_id: id, pageSize: 1 })))
  return Option.match(newest, { onNone: () => slug, onSome: ({ model }) => model })
})

const noModel = (reference: string): string => `The organization has no model ${reference}. \`seatrial models list\` lists its models.`

/** An operation on a model. If the API does not know the model, the error names it. */
export const aboutModel = <A, R>(reference: string, operation: Effect.Effect<A, PublicError | ClientFailure, R>): Effect.Effect<A, CommandError, R> =>
  Effect.mapError(operation, (failure) =>
    toCommandError("error" in failure && failure.error.code === "not_found" ? { error: { ...failure.error, message: noModel(reference) } } : failure)
  )

/** Finds a model by its ID, its slug or its callable name `organization/slug`. */
export const findModel = Effect.fnUntraced(function* (reference: string) {
  const api = yield* SeatrialClient
  if (isModelId(reference)) return yield* aboutModel(reference, api.org.models.get(reference))
  const slug = reference.slice(reference.lastIndexOf("/") + 1)
  const missing = new CommandError({ message: noModel(reference) })
  // The API refuses longer text, and slugs are shorter.
  if (slug === "" || slug.length > 120) return yield* missing
  const match: Option.Option<OrgModel> = yield* withCommandErrors(
    Stream.runHead(Stream.filter(api.org.models.list({ q: slug, pageSize: 200 }), (model) => model.slug === slug))
  )
  const model = yield* Effect.fromOption(match).pipe(Effect.mapError(() => missing))
  // The organization in a name must be the caller's. Otherwise a delete or cancel would affect the wrong model.
  if (slug !== reference && (yield* callableName(model)) !== reference) return yield* missing
  return model
})

/** The ID of a model reference. An ID is not looked up, because the operation that uses it does that. */
export const modelIdOf = Effect.fnUntraced(function* (reference: string) {
  return isModelId(reference) ? reference : (yield* findModel(reference)).id
})

/** The ID of a deployment reference: an ID, or a model, which refers to its newest deployment. */
export const deploymentIdOf = Effect.fnUntraced(function* (reference: string) {
  if (isDeploymentId(reference)) return reference
  const api = yield* SeatrialClient
  const model = yield* findModel(reference)
  const newest = yield* withCommandErrors(Stream.runHead(api.org.deployments.list({ model_id: model.id, pageSize: 1 })))
  if (Option.isNone(newest)) return yield* new CommandError({ message: `The model ${model.slug} has no deployment.` })
  return newest.value.id
})

/** The model filter of an optional model reference. */
export const optionalModelId = (reference: Option.Option<string>) =>
  Option.isSome(reference) ? Effect.map(modelIdOf(reference.value), (id) => ({ model_id: id })) : Effect.succeed({})

export interface HubRepository {
  readonly repo: string
  readonly ref?: string
}

/**
 * Parses a repository reference: `owner/name`, or the URL of its page on a hub. The URL of a branch, tag or commit
 * (`/tree/REF`, `/blob/REF/FILE`, `/commit/REF`) also sets the ref. The host is not used, because the server has only
 * one hub (`foreignHubNote`).
 */
export const parseRepository = (text: string): HubRepository => {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return { repo: text }
  const [owner = "", name = "", view, ref] = new URL(text).pathname.split("/").filter((part) => part !== "")
  const isRef = (view === "tree" || view === "blob" || view === "commit" || view === "resolve") && ref !== undefined
  return { repo: `${decodeURIComponent(owner)}/${decodeURIComponent(name)}`, ...(isRef ? { ref: decodeURIComponent(ref) } : {}) }
}

/** A note if the URL of a repository names another hub than the usual one; null for others. */
export const foreignHubNote = (text: string): string | null => {
  const host = /^https?:\/\//i.test(text) ? URL.parse(text)?.host : undefined
  if (host === undefined || host === "huggingface.co") return null
  return `The server reads ${parseRepository(text).repo} from its own model hub, whatever the host in the address (${host}).`
}
