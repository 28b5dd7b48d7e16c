import { SeatrialClient } from "@seatrial/client"
import { type CatalogModel, ModelStatus, type OrgModel, Visibility } from "@seatrial/domain"
import { Effect, type Layer, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { confirm, yesFlag } from "./admin/confirm.ts"
import { withCommandErrors } from "./apiErrors.ts"
import { idArgument, jsonFlag, limitFlag, pageSizeFor, printList, textFlag } from "./listing.ts"
import { printRecord, printRows } from "./print.ts"
import { dollars } from "./readable.ts"
import { aboutModel, findModel, modelArgument as model } from "./references.ts"

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
    status: Flag.Literals("status", ModelStatus.literals).pipe(Flag.withDescription("Only models in this state"), Flag.optional),
    visibility: Flag.Literals("visibility", Visibility.literals).pipe(Flag.withDescription("Only public or only private models"), Flag.optional),
    search: textFlag("search", "Only models with this text in the slug, name or repository"),
    limit: limitFlag,
    json: jsonFlag
  },
  Effect.fn(function* ({ search, status, visibility, ...output }) {
    const api = yield* SeatrialClient
    const filters = {
      ...(Option.isSome(status) ? { status: status.value } : {}),
      ...(Option.isSome(visibility) ? { visibility: visibility.value } : {}),
      ...(Option.isSome(search) ? { q: search.value } : {})
    }
    yield* printList(output, api.org.models.list({ ...filters, pageSize: pageSizeFor(output.limit) }), row)
  })
).pipe(Command.withDescription("Lists the organization's models, newest first."))

const get = Command.make(
  "get",
  { id: idArgument("The model's name or ID"), json: jsonFlag },
  Effect.fn(function* ({ id, json }) {
    const model = yield* findModel(id)
    const { replicas, status } = yield* aboutModel(id, (yield* SeatrialClient).models.scaling(model.id))
    yield* printRecord(json, { ...model, engines: { desired: replicas, ...status } })
  })
).pipe(Command.withDescription("Shows a model, its serving revision and its engines."))

const disable = Command.make(
  "disable",
  { model, json: jsonFlag },
  Effect.fn(function* ({ json, model }) {
    const api = yield* SeatrialClient
    yield* aboutModel(model, api.models.disable(model))
    yield* printRecord(json, { model, disabled: true })
  })
).pipe(Command.withDescription("Takes one of the organization's models out of service. Its engine stops after its last request. Its weights are kept."))

const enable = Command.make(
  "enable",
  { model, json: jsonFlag },
  Effect.fn(function* ({ json, model }) {
    const api = yield* SeatrialClient
    yield* aboutModel(model, api.models.enable(model))
    yield* printRecord(json, { model, enabled: true })
  })
).pipe(Command.withDescription("Puts a disabled model back into service. The model serves when its engine is ready."))

const remove = Command.make(
  "delete",
  { model, yes: yesFlag, json: jsonFlag },
  Effect.fn(function* ({ json, model, yes }) {
    const api = yield* SeatrialClient
    yield* confirm(yes, `${model} will be deleted permanently. Its engines and its deployment stop, and its name becomes free. Requests and receipts are kept.`)
    yield* aboutModel(model, api.models.delete(model))
    yield* printRecord(json, { model, deleted: true })
  })
).pipe(Command.withDescription("Deletes one of the organization's models permanently and frees its name. This includes a model whose deployment failed."))

/** `show` reads details from the database that the API does not have. */
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
    own: Flag.Boolean("own").pipe(Flag.withDescription("List the organization's own served models instead; requires a key"), Flag.withDefault(false)),
    json: jsonFlag
  },
  Effect.fn(function* ({ json, own }) {
    const api = yield* SeatrialClient
    const models = yield* withCommandErrors(own ? api.models.list() : api.catalog.list())
    yield* printRows(json, json ? models : models.map(catalogRow))
  })
).pipe(Command.withDescription("Lists the published models with prices in dollars per million tokens. Requires no key."))
