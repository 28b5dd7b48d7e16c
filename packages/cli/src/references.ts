import { SeatrialClient } from "@seatrial/client"
import type { OrgModel } from "@seatrial/domain"
import { Effect, Option, Stream } from "effect"
import { CommandError } from "./CommandError.ts"
import { told } from "./told.ts"

const isModelId = (text: string) => text.startsWith("mdl_")
const isDeploymentId = (text: string) => text.startsWith("dep_")

/** The name by which a model of the organization is called, which its deployments have. */
export const callableName = Effect.fnUntraced(function* ({ id, slug }: OrgModel) {
  const api = yield* SeatrialClient
  const newest = yield* told(Stream.runHead(api.org.deployments.list({ model_id: id, pageSize: 1 })))
  return Option.match(newest, { onNone: () => slug, onSome: ({ model }) => model })
})

/** The model that a user names: by its id, its slug, or its callable name `organization/slug`. */
export const findModel = Effect.fnUntraced(function* (reference: string) {
  const api = yield* SeatrialClient
  if (isModelId(reference)) return yield* told(api.org.models.get(reference))
  const slug = reference.slice(reference.lastIndexOf("/") + 1)
  const missing = new CommandError({ message: `The organization has no model ${reference}. \`seatrial models list\` shows its models.` })
  // The API refuses a longer text, and no slug is as long.
  if (slug === "" || slug.length > 120) return yield* missing
  const found: Option.Option<OrgModel> = yield* told(
    Stream.runHead(Stream.filter(api.org.models.list({ q: slug, pageSize: 200 }), (model) => model.slug === slug))
  )
  const model = yield* Effect.fromOption(found).pipe(Effect.mapError(() => missing))
  // The organization in a name must be the caller's: a command that ends something would end the wrong thing.
  if (slug !== reference && (yield* callableName(model)) !== reference) return yield* missing
  return model
})

/** The id of the model that a user names. An id is not looked up: the operation that takes it does so. */
export const modelIdOf = Effect.fnUntraced(function* (reference: string) {
  return isModelId(reference) ? reference : (yield* findModel(reference)).id
})

/** The id of the deployment that a user names: by its id, or by its model, of which the newest deployment counts. */
export const deploymentIdOf = Effect.fnUntraced(function* (reference: string) {
  if (isDeploymentId(reference)) return reference
  const api = yield* SeatrialClient
  const model = yield* findModel(reference)
  const newest = yield* told(Stream.runHead(api.org.deployments.list({ model_id: model.id, pageSize: 1 })))
  if (Option.isNone(newest)) return yield* new CommandError({ message: `The model ${model.slug} has no deployment.` })
  return newest.value.id
})

/** The filter by the model that a user names, if any. */
export const optionalModelId = (reference: Option.Option<string>) =>
  Option.isSome(reference) ? Effect.map(modelIdOf(reference.value), (id) => ({ model_id: id })) : Effect.succeed({})

export interface HubRepository {
  readonly repo: string
  readonly ref?: string
}

/**
 * The repository that a user names: `owner/name`, or the address of its page on a hub, as a browser shows it. The address of a branch, tag or commit (`/tree/REF`, `/blob/REF/FILE`,
 * `/commit/REF`) names the ref too. The host is not looked at: the server has one hub.
 */
export const parseRepository = (text: string): HubRepository => {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return { repo: text }
  const [owner = "", name = "", view, ref] = new URL(text).pathname.split("/").filter((part) => part !== "")
  const isRef = (view === "tree" || view === "blob" || view === "commit" || view === "resolve") && ref !== undefined
  return { repo: `${decodeURIComponent(owner)}/${decodeURIComponent(name)}`, ...(isRef ? { ref: decodeURIComponent(ref) } : {}) }
}
