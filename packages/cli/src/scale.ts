import { SeatrialClient } from "@seatrial/client"
import { maxReplicas, ScalingRequest } from "@seatrial/domain"
import { Effect, Option, Schedule, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { withCommandErrors } from "./apiErrors.ts"
import { CommandError } from "./CommandError.ts"
import { jsonFlag } from "./listing.ts"
import { printRecord, printRows } from "./print.ts"
import { aboutModel, modelArgument as model } from "./references.ts"

const number = (name: string, description: string) => Flag.Int(name).pipe(Flag.withDescription(description), Flag.optional)

export const scaleCommand = Command.make(
  "scale",
  {
    model,
    replicas: number("replicas", `How many engines serve the model, 1 to ${maxReplicas}; without any number, shows the setting`),
    min: number("min", "Smallest number of engines that the autoscaler sets; requires --max"),
    max: number("max", "Largest number of engines that the autoscaler sets; requires --min"),
    target: Flag.Finite("target").pipe(
      Flag.withDescription("Share of the engines' measured capacity that the autoscaler aims to use, 0.1 to 1 (default: 0.8)"),
      Flag.optional
    ),
    json: jsonFlag
  },
  Effect.fn(function* ({ json, max, min, model, replicas, target }) {
    const api = yield* SeatrialClient
    const values = { replicas, min_replicas: min, max_replicas: max, target }
    const settings = Object.entries(values).flatMap(([name, value]) => (Option.isSome(value) ? [[name, value.value] as const] : []))
    const request = yield* Schema.decodeUnknownEffect(ScalingRequest, { onExcessProperty: "error" })(Object.fromEntries(settings)).pipe(Effect.option)
    if (Option.isNone(request) && settings.length > 0) {
      return yield* new CommandError({
        exitCode: 2,
        message: `Use --replicas with 1 to ${maxReplicas}, or --min and a larger --max, and --target from 0.1 to 1.`
      })
    }
    if (Option.isSome(request)) yield* aboutModel(model, api.models.scale(model, request.value))
    const scaling = yield* aboutModel(model, api.models.scaling(model))
    yield* printRecord(json, { model, ...scaling })
  })
).pipe(Command.withDescription("Shows or changes the number of engines of one of the organization's models, or the autoscaler's limits for that number."))

export const topCommand = Command.make(
  "top",
  {
    model: Argument.optional(model),
    watch: Flag.Boolean("watch").pipe(Flag.withDescription("Print again every two seconds"), Flag.withDefault(false)),
    json: jsonFlag
  },
  Effect.fn(function* ({ json, model, watch }) {
    const api = yield* SeatrialClient
    const engines = Effect.fnUntraced(function* (name: string) {
      const load = yield* aboutModel(name, api.models.load(name))
      const rows = load.engines.map(({ pod, reachable, running }) => ({ engine: pod, running, capacity: load.capacity?.requests ?? null, ready: reachable }))
      yield* printRows(json, json ? [load] : rows)
    })
    const models = Effect.gen(function* () {
      const served = yield* api.models.list()
      const loads = yield* Effect.forEach(served, ({ id }) => Effect.map(api.models.load(id), (load) => ({ model: id, ...load })), { concurrency: 4 })
      const rows = loads.map(({ capacity, desired, model, ready, running, waiting }) => ({
        model,
        running,
        waiting,
        capacity: capacity?.requests ?? null,
        measured: capacity?.source ?? null,
        desired,
        ready
      }))
      yield* printRows(json, json ? loads : rows)
    })
    const once = withCommandErrors(Option.match(model, { onNone: () => models, onSome: engines }))
    yield* watch ? Effect.repeat(once, Schedule.spaced("2 seconds")) : once
  })
).pipe(Command.withDescription("Shows the requests that run and wait, by model, or by engine of one model, and the capacity of one engine."))
