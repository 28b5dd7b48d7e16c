import { SeatrialClient } from "@seatrial/client"
import { type CatalogModel, ModelStatus, type OrgModel, Visibility } from "@seatrial/domain"
import { Effect, type Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { confirm, yesFlag } from "./admin/confirm.ts"
import { idArgument, jsonFlag, limitFlag, pageSizeFor, printList, textFlag } from "./listing.ts"
import { printRecord, printRows } from "./print.ts"
import { dollars } from "./readable.ts"
import { findModel } from "./references.ts"
import { told } from "./told.ts"

const row = ({ display_name, hf_repo, hf_revision, id, revision, slug, status, visibility }: OrgModel) => ({
  id,
  slug,
  ...(display_name === slug ? {} : { name: display_name }),
  status,
  visibility,
  repository: hf_repo,
  commit: hf_revision.slice(0, 7),
  context: revision?.max_model_len ?? null,
  engine: revision === null ? null : `${revision.engine} ${revision.engine_version}`,
  gpus: revision === null ? null : `${revision.gpu_count} x ${revision.gpu_pool}`
})

const list = Command.make(
  "list",
  {
    status: Flag.Literals("status", ModelStatus.literals).pipe(Flag.withDescription("Only those in this state"), Flag.optional),
    visibility: Flag.Literals("visibility", Visibility.literals).pipe(Flag.withDescription("Only public or private ones"), Flag.optional),
    search: textFlag("search", "Only those with this in slug, name or repository"),
    limit: limitFlag,
    json: jsonFlag
  },
  Effect.fn(function* ({ search, status, visibility, ...shown }) {
    const api = yield* SeatrialClient
    const filters = {
      ...(Option.isSome(status) ? { status: status.value } : {}),
      ...(Option.isSome(visibility) ? { visibility: visibility.value } : {}),
      ...(Option.isSome(search) ? { q: search.value } : {})
    }
    yield* printList(shown, api.org.models.list({ ...filters, pageSize: pageSizeFor(shown.limit) }), row)
  })
).pipe(Command.withDescription("Lists the organization's models, newest first."))

const get = Command.make(
  "get",
  { id: idArgument("The model's name or id"), json: jsonFlag },
  Effect.fn(function* ({ id, json }) {
    const model = yield* findModel(id)
    yield* printRecord(json, model)
  })
).pipe(Command.withDescription("Shows a model and the revision that serves."))

const model = Argument.String("model").pipe(Argument.withDescription("The model's name, tiny-chat or acme/tiny-chat, or its id, mdl_..."))

const disable = Command.make(
  "disable",
  { model, json: jsonFlag },
  Effect.fn(function* ({ json, model }) {
    const api = yield* SeatrialClient
    yield* told(api.models.disable(model))
    yield* printRecord(json, { model, disabled: true })
  })
).pipe(Command.withDescription("Takes one of the organization's models out of service. Its engine ends with its last request; its weights stay."))

const enable = Command.make(
  "enable",
  { model, json: jsonFlag },
  Effect.fn(function* ({ json, model }) {
    const api = yield* SeatrialClient
    yield* told(api.models.enable(model))
    yield* printRecord(json, { model, enabled: true })
  })
).pipe(Command.withDescription("Puts a disabled model back into service: it serves once its engine is ready."))

const remove = Command.make(
  "delete",
  { model, yes: yesFlag, json: jsonFlag },
  Effect.fn(function* ({ json, model, yes }) {
    const api = yield* SeatrialClient
    yield* confirm(yes, `${model} is deleted for good: what runs of it ends, and its name is free. Requests and receipts stay.`)
    yield* told(api.models.delete(model))
    yield* printRecord(json, { model, deleted: true })
  })
).pipe(Command.withDescription("Deletes one of the organization's models for good, also one whose deployment failed, and frees its name."))

/** `show`: what the API has no place for, from the database. */
export const makeModelsCommand = <E, E2, R>(layerKeyed: Layer.Layer<SeatrialClient, E>, show: Command.Command<"show", never, object, E2, R>) =>
  Command.make("models").pipe(
    Command.withDescription("The organization's models."),
    Command.withSubcommands([
      list.pipe(Command.provide(layerKeyed)),
      get.pipe(Command.provide(layerKeyed)),
      disable.pipe(Command.provide(layerKeyed)),
      enable.pipe(Command.provide(layerKeyed)),
      remove.pipe(Command.provide(layerKeyed)),
      show
    ])
  )

const catalogRow = (model: CatalogModel) => ({
  id: model.id,
  context: model.max_model_len,
  input: dollars(model.price_in_micros_per_mtok),
  output: dollars(model.price_out_micros_per_mtok),
  tools: model.supports_tool_calls,
  json: model.supports_structured_output,
  images: model.supports_image_input,
  reasoning: model.supports_reasoning,
  engine: `${model.engine} ${model.engine_version}`,
  repository: model.hf_repo
})

export const catalogCommand = Command.make(
  "catalog",
  {
    own: Flag.Boolean("own").pipe(Flag.withDescription("The organization's own served models instead; needs a key"), Flag.withDefault(false)),
    json: jsonFlag
  },
  Effect.fn(function* ({ json, own }) {
    const api = yield* SeatrialClient
    const models = yield* told(own ? api.models.list() : api.catalog.list())
    yield* printRows(json, json ? models : models.map(catalogRow))
  })
).pipe(Command.withDescription("Lists the models that everybody may use, with prices in dollars per million tokens. Needs no key."))
