import { fitErrorOf } from "@seatrial/domain"
import { type AdministeredModel, ModelAdmin, type TrialFigures } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { printRecord, printRows } from "../print.ts"
import { size } from "../readable.ts"
import { confirm, yesFlag as yes } from "./confirm.ts"
import { jsonFlag as json, orgFlag as org, organization } from "./organization.ts"

export const modelArgument = Argument.String("model").pipe(Argument.withDescription("The model's slug, the name that callers give, or its id, mdl_..."))

const rate = (name: string, of: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(`${of}, micro-dollars per million tokens`),
    Flag.withSchema(Schema.String.check(Schema.isPattern(/^\d{1,15}$/u, { message: "Expected whole micro-dollars, 0 or more: 1000000 is one US dollar" })))
  )

/** The organisation's model of that slug, name or id, or a sentence that says there is none. */
export const modelOf = Effect.fnUntraced(function* (orgSlug: string, given: string) {
  const models = yield* ModelAdmin
  const { id: orgId } = yield* organization(orgSlug)
  // A private model is called by the organization's slug before its own.
  const found = yield* models.find(orgId, given.startsWith(`${orgSlug}/`) ? given.slice(orgSlug.length + 1) : given)
  if (Option.isNone(found)) return yield* notFound(orgSlug, given)
  return { models, orgId, model: found.value }
})

const notFound = (orgSlug: string, model: string) =>
  new CommandError({ message: `${orgSlug} has no model ${model}. \`seatrial admin models list --org ${orgSlug}\` shows them.` })

const servesNothing = ({ slug }: AdministeredModel) =>
  new CommandError({ message: `${slug} has never gone live: it has no revision that could serve. Deploy it first, and wait until it is activated.` })

const listed = ({ id, model, revision_id, slug, status, updated_at, visibility }: AdministeredModel) => ({
  id,
  slug,
  model,
  status,
  visibility,
  revision_id,
  updated_at
})

/** How good the estimate was and how long starts take: for people in words, for programs in figures. */
const measuredBy = (figures: TrialFigures, json: boolean) => {
  const error = fitErrorOf(figures.estimate, figures.measured)
  const { calibrated } = figures.estimate
  if (json) return { estimate: error === null ? null : { kv_cache_bytes: error, calibrated }, measured: figures.measured, starts: figures.starts }
  const words =
    error === null
      ? "the engine did not tell"
      : `${size(error.low)} to ${size(error.high)} of KV cache a GPU were estimated${calibrated ? " (calibrated)" : ""}, ${size(error.measured)} measured: ` +
        `${error.inside ? "inside" : "OUTSIDE"}, ${(100 * Math.abs(error.error)).toFixed(1)}% ${error.error < 0 ? "below" : "above"} the middle`
  const layout = figures.measured.kv_layout
  const starts = figures.starts.map(({ kind, median, of }) => {
    const parts = Object.entries(median).flatMap(([part, seconds]) => (seconds === null ? [] : [`${part.replaceAll("_", " ")} ${seconds.toFixed(2)} s`]))
    return [`${kind}_start`, `${parts.join(", ")} (median of ${of})`]
  })
  return {
    estimate: words,
    ...(layout?.differs === true ? { kv_layout_differs: `${layout.told.toFixed(1)} bytes a token, estimated ${layout.exact.toFixed(1)}` } : {}),
    ...Object.fromEntries(starts)
  }
}

const changes = (orgSlug: string, model: AdministeredModel) => ({
  ModelNotFound: () => notFound(orgSlug, model.slug),
  ModelServesNothing: () => servesNothing(model)
})

/** Also a command of `seatrial models`. */
export const showModel = Command.make(
  "show",
  { org, model: modelArgument, json },
  Effect.fn(function* ({ json, model, org }) {
    const found = yield* modelOf(org, model)
    const figures = Option.getOrNull(yield* found.models.figures(found.orgId, found.model.id))
    yield* printRecord(json, { ...found.model, ...(figures === null ? {} : measuredBy(figures, json)) })
  })
).pipe(Command.withDescription("Shows a model with the rates of what serves, and how good the estimate of its memory was. Reads the database."))

export const modelsCommand = Command.make("models").pipe(
  Command.withDescription("Models beyond their deployments: whether they serve, and who may call them."),
  Command.withSubcommands([
    Command.make(
      "list",
      { org, json },
      Effect.fn(function* ({ json, org }) {
        const models = yield* ModelAdmin
        const { id } = yield* organization(org)
        const all = yield* models.list(id)
        yield* printRows(json, json ? all : all.map(listed))
      })
    ).pipe(Command.withDescription("Lists an organization's models.")),
    showModel,
    Command.make(
      "disable",
      { org, model: modelArgument, yes, json },
      Effect.fn(function* ({ json, model: name, org, yes }) {
        const { model, models, orgId } = yield* modelOf(org, name)
        yield* confirm(yes, `${model.model} takes no requests any more, and its GPUs are given back; its weights and settings stay.`)
        yield* printRecord(json, { ...(yield* models.disable(orgId, model.id).pipe(Effect.catchTags(changes(org, model)))) })
      })
    ).pipe(Command.withDescription("Takes a model out of service at once. Its engine ends with its last request; its weights stay.")),
    Command.make(
      "enable",
      { org, model: modelArgument, json },
      Effect.fn(function* ({ json, model: name, org }) {
        const { model, models, orgId } = yield* modelOf(org, name)
        yield* printRecord(json, { ...(yield* models.enable(orgId, model.id).pipe(Effect.catchTags(changes(org, model)))) })
      })
    ).pipe(Command.withDescription("Puts a disabled model back into service: what served serves again once its engine is ready.")),
    Command.make(
      "delete",
      { org, model: modelArgument, yes, json },
      Effect.fn(function* ({ json, model: name, org, yes }) {
        const { model, models, orgId } = yield* modelOf(org, name)
        yield* confirm(yes, `${model.model} is deleted for good: what runs of it ends, and its name is free. Requests and receipts stay.`)
        const removed = yield* models.remove(orgId, model.id).pipe(Effect.catchTag("ModelNotFound", () => notFound(org, name)))
        yield* printRecord(json, { id: removed.id, slug: removed.slug, deleted: true })
      })
    ).pipe(Command.withDescription("Deletes a model for good. Its requests and receipts stay readable.")),
    Command.make(
      "publish",
      {
        org,
        model: modelArgument,
        input: rate("input", "Uncached input tokens"),
        output: rate("output", "Output tokens"),
        cacheRead: rate("cache-read", "Input tokens read from the cache"),
        cacheWrite: rate("cache-write", "Input tokens written to the cache"),
        yes,
        json
      },
      Effect.fn(function* ({ cacheRead, cacheWrite, input, json, model: name, org, output, yes }) {
        const { model, models, orgId } = yield* modelOf(org, name)
        if (model.visibility === "private") {
          yield* confirm(yes, `${model.model} becomes ${model.slug}: everybody who has a key may call it under that name, and nobody under its old one.`)
        }
        const prices = {
          input_micros_per_mtok: input,
          output_micros_per_mtok: output,
          cache_read_micros_per_mtok: cacheRead,
          cache_write_micros_per_mtok: cacheWrite
        }
        const published = yield* models.publish(orgId, model.id, prices).pipe(
          Effect.catchTags({
            ...changes(org, model),
            PublicNameTaken: ({ slug }) => new CommandError({ message: `Another model is published as ${slug}. A public name is one model's only.` })
          })
        )
        yield* printRecord(json, { ...published })
      })
    ).pipe(Command.withDescription("Puts a model into the public catalog at these rates, or changes the rates of one that is there.")),
    Command.make(
      "unpublish",
      { org, model: modelArgument, yes, json },
      Effect.fn(function* ({ json, model: name, org, yes }) {
        const { model, models, orgId } = yield* modelOf(org, name)
        if (model.visibility === "public") yield* confirm(yes, `${model.slug} leaves the catalog: only ${org} may call it, as ${org}/${model.slug}.`)
        const withdrawn = yield* models.unpublish(orgId, model.id).pipe(Effect.catchTag("ModelNotFound", () => notFound(org, name)))
        yield* printRecord(json, { ...withdrawn })
      })
    ).pipe(Command.withDescription("Takes a model out of the public catalog; its organization keeps it, without rates."))
  ])
)
