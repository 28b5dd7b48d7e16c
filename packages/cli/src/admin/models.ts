import { type Fit, fitErrorOf } from "@seatrial/domain"
import { type AdministeredModel, ModelAdmin, type TrialFigures } from "@seatrial/store"
import { Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { printRecord, printRows } from "../print.ts"
import { size } from "../readable.ts"
import { confirm, yesFlag as yes } from "./confirm.ts"
import { jsonFlag as json, orgFlag as org, organization } from "./organization.ts"

export const modelArgument = Argument.String("model").pipe(Argument.withDescription("The model's slug, the name that callers use, or its ID, mdl_..."))

const rate = (name: string, of: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(`${of}, micro-dollars per million tokens`),
    Flag.withSchema(Schema.String.check(Schema.isPattern(/^\d{1,15}$/u, { message: "Expected whole micro-dollars, 0 or more: 1000000 is one US dollar" })))
  )

/** Finds a model of the organization by slug, name or ID. Fails if it does not exist. */
export const modelOf = Effect.fnUntraced(function* (orgSlug: string, reference: string) {
  const models = yield* ModelAdmin
  const { id: orgId } = yield* organization(orgSlug)
  // Callers use `organization/slug` for a private model.
  const model = yield* models.find(orgId, reference.startsWith(`${orgSlug}/`) ? reference.slice(orgSlug.length + 1) : reference)
  if (Option.isNone(model)) return yield* notFound(orgSlug, reference)
  return { models, orgId, model: model.value }
})

const notFound = (orgSlug: string, model: string) =>
  new CommandError({ message: `${orgSlug} has no model ${model}. \`seatrial admin models list --org ${orgSlug}\` lists its models.` })

const servesNothing = ({ slug }: AdministeredModel) =>
  new CommandError({ message: `${slug} has no activated revision, so it cannot serve. Deploy it and wait until it is activated.` })

const listed = ({ id, model, revision_id, slug, status, updated_at, visibility }: AdministeredModel) => ({
  id,
  slug,
  model,
  status,
  visibility,
  revision_id,
  updated_at
})

/** What an estimate rests on, as the end of its sentence. */
export const basisOf = ({ calibrated, unmeasured }: Pick<Fit, "calibrated" | "unmeasured">): string => {
  if (calibrated) return " (calibrated)"
  return unmeasured === true ? " (by arithmetic that was compared with no measured start of the engine)" : ""
}

/** The accuracy of the memory estimate and the start times, as text for people or as figures for programs. */
const measurementsOf = (figures: TrialFigures, json: boolean) => {
  const error = fitErrorOf(figures.estimate, figures.measured)
  const { calibrated, unmeasured } = figures.estimate
  if (json)
    return {
      estimate: error === null ? null : { kv_cache_bytes: error, calibrated, ...(unmeasured === true ? { unmeasured } : {}) },
      measured: figures.measured,
      starts: figures.starts
    }
  const words =
    error === null
      ? "the engine did not report it"
      : `${size(error.low)} to ${size(error.high)} of KV cache per GPU estimated${basisOf(figures.estimate)}, ${size(error.measured)} measured: ` +
        `${error.inside ? "within" : "outside"} the estimate, ${(100 * Math.abs(error.error)).toFixed(1)}% ${error.error < 0 ? "below" : "above"} its center`
  const layout = figures.measured.kv_layout
  const starts = figures.starts.map(({ kind, median, of }) => {
    const parts = Object.entries(median).flatMap(([part, seconds]) => (seconds === null ? [] : [`${part.replaceAll("_", " ")} ${seconds.toFixed(2)} s`]))
    return [`${kind}_start`, `${parts.join(", ")} (median of ${of})`]
  })
  return {
    estimate: words,
    ...(layout?.differs === true ? { kv_layout_differs: `${layout.reported.toFixed(1)} bytes per token reported, ${layout.exact.toFixed(1)} estimated` } : {}),
    ...Object.fromEntries(starts)
  }
}

const changes = (orgSlug: string, model: AdministeredModel) => ({
  ModelNotFound: () => notFound(orgSlug, model.slug),
  ModelServesNothing: () => servesNothing(model)
})

/** Also a subcommand of `seatrial models`. */
export const showModel = Command.make(
  "show",
  { org, model: modelArgument, json },
  Effect.fn(function* ({ json, model, org }) {
    const { model: row, models, orgId } = yield* modelOf(org, model)
    const figures = Option.getOrNull(yield* models.figures(orgId, row.id))
    yield* printRecord(json, { ...row, ...(figures === null ? {} : measurementsOf(figures, json)) })
  })
).pipe(Command.withDescription("Shows a model with the prices of its serving revision and the accuracy of its memory estimate. Reads the database."))

export const modelsCommand = Command.make("models").pipe(
  Command.withDescription("Models: whether they serve, and who may call them."),
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
        yield* confirm(yes, `${model.model} will accept no more requests, and its GPUs are released. Its weights and settings are kept.`)
        yield* printRecord(json, { ...(yield* models.disable(orgId, model.id).pipe(Effect.catchTags(changes(org, model)))) })
      })
    ).pipe(Command.withDescription("Takes a model out of service immediately. Its engine stops after its last request. Its weights are kept.")),
    Command.make(
      "enable",
      { org, model: modelArgument, json },
      Effect.fn(function* ({ json, model: name, org }) {
        const { model, models, orgId } = yield* modelOf(org, name)
        yield* printRecord(json, { ...(yield* models.enable(orgId, model.id).pipe(Effect.catchTags(changes(org, model)))) })
      })
    ).pipe(Command.withDescription("Puts a disabled model back into service. Its last serving revision serves again when its engine is ready.")),
    Command.make(
      "delete",
      { org, model: modelArgument, yes, json },
      Effect.fn(function* ({ json, model: name, org, yes }) {
        const { model, models, orgId } = yield* modelOf(org, name)
        yield* confirm(
          yes,
          `${model.model} will be deleted permanently. Its engines and its deployment stop, and its name becomes free. Requests and receipts are kept.`
        )
        const removed = yield* models.remove(orgId, model.id).pipe(Effect.catchTag("ModelNotFound", () => notFound(org, name)))
        yield* printRecord(json, { id: removed.id, slug: removed.slug, deleted: true })
      })
    ).pipe(Command.withDescription("Deletes a model permanently. Its requests and receipts stay readable.")),
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
          yield* confirm(yes, `${model.model} will be renamed to ${model.slug}. Every caller with a key may use the new name, and the old name stops working.`)
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
            PublicNameTaken: ({ slug }) => new CommandError({ message: `Another model is already published as ${slug}. Public names must be unique.` })
          })
        )
        yield* printRecord(json, { ...published })
      })
    ).pipe(Command.withDescription("Publishes a model in the public catalog at these prices, or changes the prices of a published model.")),
    Command.make(
      "unpublish",
      { org, model: modelArgument, yes, json },
      Effect.fn(function* ({ json, model: name, org, yes }) {
        const { model, models, orgId } = yield* modelOf(org, name)
        if (model.visibility === "public")
          yield* confirm(yes, `${model.slug} will be removed from the catalog. Only ${org} may call it, as ${org}/${model.slug}.`)
        const withdrawn = yield* models.unpublish(orgId, model.id).pipe(Effect.catchTag("ModelNotFound", () => notFound(org, name)))
        yield* printRecord(json, { ...withdrawn })
      })
    ).pipe(Command.withDescription("Removes a model from the public catalog. The organization keeps the model, without prices."))
  ])
)
