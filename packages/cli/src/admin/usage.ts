import { GpuHolds } from "@seatrial/store"
import { Clock, Effect, Option } from "effect"
import { Command } from "effect/cli"
import { fromDay as from, toDay as to } from "../days.ts"
import { printRows } from "../print.ts"
import { jsonFlag as json, orgFlag as org, organization } from "./organization.ts"

/** GPU-seconds, exact to the millisecond. */
const seconds = (gpuMillis: bigint) => `${gpuMillis / 1_000n}.${(gpuMillis % 1_000n).toString().padStart(3, "0")}`

export const usageCommand = Command.make("usage").pipe(
  Command.withDescription("Usage of an organization."),
  Command.withSubcommands([
    Command.make(
      "gpu",
      { org, from, to, json },
      Effect.fn(function* ({ from, json, org, to }) {
        const holds = yield* GpuHolds
        const { id } = yield* organization(org)
        const today = new Date(yield* Clock.currentTimeMillis).toISOString().slice(0, 10)
        const rows = yield* holds.usage(
          id,
          Option.getOrElse(from, () => `${today.slice(0, 8)}01`),
          Option.getOrElse(to, () => today)
        )
        yield* printRows(
          json,
          rows.map(({ day, deploymentId, gpuMillis, hostClass, micros }) => ({
            day,
            deployment: deploymentId,
            host_class: hostClass,
            gpu_seconds: seconds(gpuMillis),
            cost_micros: micros.toString()
          }))
        )
      })
    ).pipe(
      Command.withDescription(
        "GPU time and cost of each deployment and day (UTC). If a GPU is still in use, its time is counted up to the operator's last update."
      )
    )
  ])
)
