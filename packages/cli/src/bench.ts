import { ModelAdmin } from "@seatrial/store"
import { Console, Effect, Option } from "effect"
import { Command } from "effect/cli"
import { modelArgument, modelOf } from "./admin/models.ts"
import { jsonFlag as json, orgFlag as org } from "./admin/organization.ts"
import { benchChart } from "./benchChart.ts"
import { CommandError } from "./CommandError.ts"
import { printRecord } from "./print.ts"

/** Shows the benchmarks that trials have measured. */
export const benchCommand = Command.make("bench").pipe(
  Command.withDescription("Benchmarks of models, measured during their trials."),
  Command.withSubcommands([
    Command.make(
      "show",
      { org, model: modelArgument, json },
      Effect.fn(function* ({ json, model: name, org }) {
        const { model, orgId } = yield* modelOf(org, name)
        const figures = Option.getOrNull(yield* (yield* ModelAdmin).figures(orgId, model.id))
        const benchmark = figures?.benchmark ?? null
        if (figures === null || benchmark === null) {
          return yield* new CommandError({ message: `${model.model} has not been benchmarked yet. The benchmark is the last part of its trial.` })
        }
        if (json) return yield* printRecord(true, { model: model.model, commit: figures.commit, ...benchmark })
        yield* Console.log(benchChart(model.model, figures, benchmark).join("\n"))
      })
    ).pipe(Command.withDescription("Shows the benchmark of a model's serving revision, or of its newest revision with a benchmark."))
  ])
)
