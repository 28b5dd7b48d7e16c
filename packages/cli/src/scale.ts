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

const decodeRequest = Schema.decodeUnknownEffect(ScalingRequest, { onExcessProperty: "error" })

const isBetween = (value: Option.Option<number>, low: number, high: number) => Option.isNone(value) || (value.value >= low && value.value <= high)

/** Why the flags are no request. */
const problemOf = ({ max, min, replicas, target }: Readonly<Record<"max" | "min" | "replicas" | "target", Option.Option<number>>>): string => {
  const hasLimits = Option.isSome(min) || Option.isSome(max)
  if (Option.isSome(replicas) && (hasLimits || Option.isSome(target))) return "Use --replicas alone, or --min and --max with or without --target."
  if (!isBetween(replicas, 1, maxReplicas)) return `--replicas must be 1 to ${maxReplicas}.`
  if (Option.isNone(min) || Option.isNone(max)) return hasLimits ? "Use --min and --max together." : "--target requires --min and --max."
  if (!isBetween(min, 0, maxReplicas)) return `--min must be 0 to ${maxReplicas}.`
  if (!isBetween(max, 1, maxReplicas)) return `--max must be 1 to ${maxReplicas}.`
  if (!isBetween(target, 0.1, 1)) return "--target must be 0.1 to 1."
  return "--min must be below --max. For a fixed number, use --replicas."
}

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
    // The state of the engines follows the setting after seconds, so a change prints the setting alone.
    if (settings.length === 0) return yield* printRecord(json, { model, ...(yield* aboutModel(model, api.models.scaling(model))) })
    const request = yield* decodeRequest(Object.fromEntries(settings)).pipe(
      Effect.mapError(() => new CommandError({ exitCode: 2, message: problemOf({ replicas, min, max, target }) }))
    )
    return yield* printRecord(json, { model, ...(yield* aboutModel(model, api.models.scale(model, request))) })
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
